-- claim_suspect: take the oldest due suspect of one shard, queue and priority, and begin its lease. Whoever claims it must
-- run nothing beside it: it has ended, or stopped, two workers or more.
-- $1 shard (int2), $2 queue (text), $3 priority (int2), $4 worker_id (uuid), $5 lease in seconds (float8)
-- index: executions_suspects (due_at), which holds next to nothing
-- AS MATERIALIZED, = ANY (ARRAY(…)) and LEFT JOIN: as in claim_due.sql
WITH due AS MATERIALIZED (
    SELECT execution_id
      FROM onthedot.executions
     WHERE shard = $1 AND queue = $2 AND priority = $3
       AND status IN ('PENDING', 'RETRYING') AND NOT held AND worker_deaths >= 2 AND cancel_requested_at IS NULL
       AND NOT limited
       AND (expires_at IS NULL OR expires_at > now() OR attempt_number > 0)
       AND due_at <= now()
       AND NOT EXISTS (SELECT FROM onthedot.queues AS q
                        WHERE q.queue = $2 AND q.paused_at IS NOT NULL
                          AND (q.paused_until IS NULL OR q.paused_until > now()))
     ORDER BY due_at
     LIMIT 1
       FOR UPDATE SKIP LOCKED
), claimed AS (
    UPDATE onthedot.executions AS e
       SET status = 'RUNNING', attempt_number = e.attempt_number + 1, lease_epoch = e.lease_epoch + 1,
           worker_id = $4, claimed_at = now(), lease_expires_at = now() + make_interval(secs => $5::float8),
           started_at = NULL
     WHERE e.shard = $1 AND e.execution_id = ANY (ARRAY(SELECT execution_id FROM due))
    RETURNING e.*
)
SELECT c.shard, c.execution_id, c.job_id, c.user_id, c.task_id, t.revision AS task_revision, c.queue, c.priority,
       c.status, c.trigger, c.scheduled_time, c.due_at, c.first_due_at, c.parameters, c.timeout_seconds,
       c.max_attempts, c.attempt_number, c.lease_epoch, c.claimed_at, c.lease_expires_at, c.lateness_ms,
       c.parameters_checked, c.run_key
  FROM claimed AS c LEFT JOIN onthedot.tasks AS t ON t.task_id = c.task_id
