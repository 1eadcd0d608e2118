-- A user who is new may own executions already: of jobs that were deleted, and their owner after them.
CREATE TRIGGER users_limited_at_once AFTER INSERT ON onthedot.users FOR EACH ROW
    WHEN (NEW.limited)
    EXECUTE FUNCTION onthedot.note_new_limit('user', 'user_id');
---
CREATE OR REPLACE TRIGGER tasks_new_limit AFTER UPDATE ON onthedot.tasks FOR EACH ROW
    WHEN (NEW.limited AND NOT OLD.limited OR OLD.concurrency IS NULL AND NEW.concurrency IS NOT NULL
          OR NEW.concurrency_key IS NOT NULL AND NEW.concurrency_key IS DISTINCT FROM OLD.concurrency_key)
    EXECUTE FUNCTION onthedot.note_new_limit('task', 'task_id');
