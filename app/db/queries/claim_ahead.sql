-- claim_ahead: lease up to $4 executions of one shard, queue and priority that fall due within the look-ahead.
-- They become SCHEDULED, are armed shortly before their instant (arm.sql) and fire from the worker's timer.
-- $1 shard (int2), $2 queue (text), $3 priority (int2), $4 limit (int4), $5 worker_id (uuid), $6 lease in seconds (float8), $7 look-ahead in seconds (float8)
-- index: executions_ready (queue, priority, due_at)
-- AS MATERIALIZED and LEFT JOIN: as in claim_due.sql
WITH due AS MATERIALIZED (
    SELECT execution_id, task_id
      FROM onthedot.executions
     WHERE shard = $1 AND queue = $2 AND priority = $3
       AND status IN ('PENDING', 'RETRYING') AND NOT held
       AND due_at > now() AND due_at <= now() + make_interval(secs => $7::float8)
     ORDER BY due_at
     LIMIT $4
       FOR UPDATE SKIP LOCKED
)
UPDATE onthedot.executions AS e
   SET status = 'SCHEDULED', lease_epoch = e.lease_epoch + 1,
       worker_id = $5, claimed_at = now(), lease_expires_at = now() + make_interval(secs => $6::float8),
       started_at = NULL
  FROM due LEFT JOIN onthedot.tasks AS t ON t.task_id = due.task_id
 WHERE e.shard = $1 AND e.execution_id = due.execution_id
RETURNING e.shard, e.execution_id, e.job_id, e.user_id, e.task_id, t.version AS task_version, e.queue, e.priority,
          e.status, e.trigger, e.scheduled_time, e.due_at, e.first_due_at, e.parameters, e.timeout_seconds,
          e.max_attempts, e.attempt_number, e.lease_epoch, e.claimed_at, e.lease_expires_at, e.lateness_ms
