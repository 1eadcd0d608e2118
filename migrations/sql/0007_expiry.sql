-- Start deadlines: an execution whose first attempt has not begun by then never runs (docs/limits.md).

ALTER TABLE onthedot.jobs
    ADD COLUMN expires_after_seconds double precision CHECK (expires_after_seconds > 0);
---
COMMENT ON COLUMN onthedot.jobs.expires_after_seconds IS
    'An execution that has not begun so long after it was first due never runs; null: it waits for ever';
---
ALTER TABLE onthedot.executions ADD COLUMN expires_at timestamptz;
---
COMMENT ON COLUMN onthedot.executions.expires_at IS
    'Start deadline: the first attempt begins before it or never; null: none';
---
-- No claim reads by it: it is how maintenance/expirer.py finds what is too late, and holds only what has a deadline.
CREATE INDEX executions_expiring ON onthedot.executions (expires_at)
    WHERE expires_at IS NOT NULL AND status IN ('BLOCKED', 'PENDING');
---
-- In one place, and IMMUTABLE, which seconds added to an instant are: Citus takes no other function of columns in SET.
-- STRICT: without a deadline nothing is called. No later than what every client can read.
CREATE FUNCTION onthedot.start_deadline(first_due_at timestamptz, expires_after_seconds double precision)
RETURNS timestamptz LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN least(first_due_at + make_interval(secs => expires_after_seconds), '9999-12-31 00:00Z'::timestamptz);
END $$;
---
REVOKE ALL ON FUNCTION onthedot.start_deadline(timestamptz, double precision) FROM PUBLIC;
---
COMMENT ON FUNCTION onthedot.start_deadline(timestamptz, double precision) IS
    'By when the first attempt of an execution must have begun that was first due then';
---
CREATE OR REPLACE TRIGGER audit_update AFTER UPDATE OF
    user_id, task_id, name, tags, schedule_type, expression, scheduled_time, every_seconds, timezone,
    timezone_requested, gap, fold, starts_at, ends_at, misfire, misfire_grace_seconds, overlap, parameters, queue,
    priority, max_retries, timeout_seconds, is_active, pause_reason, paused_until, expires_after_seconds
    ON onthedot.jobs
    FOR EACH ROW EXECUTE FUNCTION onthedot.note_change('job', 'job_id');
---
CREATE OR REPLACE VIEW audit.jobs AS
SELECT j.job_id, j.name, j.user_id, j.task_id, t.name AS task_name, j.schedule_type, j.expression, j.scheduled_time,
       j.every_seconds, j.timezone, j.starts_at, j.ends_at, j.is_active, j.pause_reason, j.paused_until,
       (SELECT min(e.scheduled_time)
          FROM onthedot.executions AS e
         WHERE e.shard = j.shard AND e.job_id = j.job_id AND e.status IN ('BLOCKED', 'PENDING', 'SCHEDULED'))
           AS next_time,
       coalesce(j.queue, t.queue) AS queue, coalesce(j.priority, t.priority) AS priority,
       coalesce(j.max_retries, t.max_retries, q.max_retries) AS max_retries,
       coalesce(j.timeout_seconds, t.timeout_seconds) AS timeout_seconds, j.overlap, j.misfire, j.parameters, j.tags,
       j.batch_id, j.created_at, j.updated_at, j.version, j.shard, j.expires_after_seconds
  FROM onthedot.jobs AS j
  LEFT JOIN onthedot.tasks AS t ON t.task_id = j.task_id
  LEFT JOIN onthedot.queues AS q ON q.queue = coalesce(j.queue, t.queue);
---
COMMENT ON COLUMN audit.jobs.expires_after_seconds IS
    'An execution that has not begun so long after it was first due never runs; null: it waits for ever';
---
SELECT onthedot.ensure_roles();
