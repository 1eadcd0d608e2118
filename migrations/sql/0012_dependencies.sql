-- Jobs after other jobs (docs/workflows.md): an execution that its schedule brings about waits, BLOCKED, for the executions
-- of the jobs that its job depends on.

ALTER TABLE onthedot.jobs ADD COLUMN depends_on uuid[] NOT NULL DEFAULT '{}';
---
COMMENT ON COLUMN onthedot.jobs.depends_on IS
    'Jobs whose execution of the same instant, or the latest before it, must have completed before its own begins';
---
-- Few jobs depend on others: by it workers know which ends somebody waits for.
CREATE INDEX jobs_dependent ON onthedot.jobs (job_id) WHERE depends_on <> '{}';
---
CREATE INDEX executions_blocked ON onthedot.executions (due_at, execution_id) WHERE status = 'BLOCKED';
---
CREATE OR REPLACE TRIGGER audit_update AFTER UPDATE OF
    user_id, task_id, name, tags, schedule_type, expression, scheduled_time, every_seconds, timezone,
    timezone_requested, gap, fold, starts_at, ends_at, misfire, misfire_grace_seconds, overlap, parameters, queue,
    priority, max_retries, timeout_seconds, is_active, pause_reason, paused_until, expires_after_seconds, concurrency_key,
    concurrency_limit, depends_on
    ON onthedot.jobs
    FOR EACH ROW EXECUTE FUNCTION onthedot.note_change('job', 'job_id')
