-- claim_due: take up to $4 due executions of one shard, queue and priority, oldest first, and begin their leases.
-- $1 shard (int2), $2 queue (text), $3 priority (int2), $4 limit (int4), $5 worker_id (uuid), $6 lease in seconds (float8),
-- $7 low-water mark (timestamptz): nothing ready is due before it (app/worker/marks.py)
-- index: executions_ready (queue, priority, limited, due_at). It has no suspects: what ends workers is claimed by claim_suspect.sql.
-- AS MATERIALIZED: a nested loop over the LIMIT could lock, and so hide, more rows than asked for.
-- = ANY (ARRAY(…)): joined with `due`, a large claim would hash it against a scan of the whole partition.
-- LEFT JOIN: an execution whose task is gone is claimed too and fails visibly, instead of waiting for ever.
WITH due AS MATERIALIZED (
    SELECT execution_id
      FROM onthedot.executions
     WHERE shard = $1 AND queue = $2 AND priority = $3
       AND status IN ('PENDING', 'RETRYING') AND NOT held AND worker_deaths < 2 AND cancel_requested_at IS NULL
       AND (expires_at IS NULL OR expires_at > now() OR attempt_number > 0)
       AND NOT limited
       AND due_at >= $7::timestamptz AND due_at <= now()
       AND NOT EXISTS (SELECT FROM onthedot.queues AS q
                        WHERE q.queue = $2 AND q.paused_at IS NOT NULL
                          AND (q.paused_until IS NULL OR q.paused_until > now()))
     ORDER BY due_at
     LIMIT $4
       FOR UPDATE SKIP LOCKED
), claimed AS (
    UPDATE onthedot.executions AS e
       SET status = 'RUNNING', attempt_number = e.attempt_number + 1, lease_epoch = e.lease_epoch + 1,
           worker_id = $5, claimed_at = now(), lease_expires_at = now() + make_interval(secs => $6::float8),
           started_at = NULL
     WHERE e.shard = $1 AND e.execution_id = ANY (ARRAY(SELECT execution_id FROM due))
    RETURNING e.*
)
SELECT c.shard, c.execution_id, c.job_id, c.user_id, c.task_id, t.revision AS task_revision, c.queue, c.priority,
       c.status, c.trigger, c.scheduled_time, c.due_at, c.first_due_at, c.parameters, c.timeout_seconds,
       c.max_attempts, c.attempt_number, c.lease_epoch, c.claimed_at, c.lease_expires_at, c.lateness_ms,
       c.parameters_checked, c.run_key
  FROM claimed AS c LEFT JOIN onthedot.tasks AS t ON t.task_id = c.task_id
