-- expire_executions: move executions of one shard to the history whose start deadline has passed before they began.
-- $1 shard (int2), $2 limit (int4), $3 error (text, JSON; the deadline is added to its message)
-- index: executions_expiring (expires_at). What is paused is among them; what a worker has leased ahead is not: it begins
-- at its instant, or comes back. The claims say the same of a row that nobody has moved yet.
-- = ANY (ARRAY(…)): as in claim_due.sql
WITH passed AS MATERIALIZED (
    SELECT execution_id
      FROM onthedot.executions
     WHERE shard = $1 AND expires_at <= now() AND status IN ('BLOCKED', 'PENDING') AND attempt_number = 0
       AND cancel_requested_at IS NULL
     ORDER BY expires_at
     LIMIT $2
       FOR UPDATE SKIP LOCKED
), ended AS (
    DELETE FROM onthedot.executions AS e
     WHERE e.shard = $1 AND e.execution_id = ANY (ARRAY(SELECT execution_id FROM passed))
    RETURNING e.*
)
INSERT INTO onthedot.execution_history
       (shard, execution_id, job_id, user_id, task_id, queue, priority, status, disposition, trigger, run_key,
        retried_from, scheduled_time, due_at, first_due_at, parameters, timeout_seconds, max_attempts,
        attempt_number, lease_epoch, completed_at, error, batch_id, worker_deaths)
SELECT shard, execution_id, job_id, user_id, task_id, queue, priority, 'SKIPPED', 'expired', trigger, run_key,
       retried_from, scheduled_time, due_at, first_due_at, parameters, timeout_seconds, max_attempts,
       attempt_number, lease_epoch + 1, now(),
       jsonb_set($3::text::jsonb, '{message}', to_jsonb(($3::text::jsonb ->> 'message') || ' '
                 || to_char(expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))),
       batch_id, worker_deaths
  FROM ended
RETURNING execution_id
