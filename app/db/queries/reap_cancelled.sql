-- reap_cancelled: end executions of one shard that were asked to stop while running and that no worker runs any more:
-- given back, failed, or left behind by a worker that is gone.
-- $1 shard (int2), $2 limit (int4)
-- index: executions_cancelling (worker_id) WHERE cancel_requested_at IS NOT NULL, which holds next to nothing
WITH asked AS MATERIALIZED (
    SELECT execution_id
      FROM onthedot.executions
     WHERE shard = $1 AND cancel_requested_at IS NOT NULL
       AND (status IN ('PENDING', 'RETRYING') OR lease_expires_at < now())
     LIMIT $2
       FOR UPDATE SKIP LOCKED
), ended AS (
    DELETE FROM onthedot.executions AS e
     USING asked
     WHERE e.shard = $1 AND e.execution_id = asked.execution_id
    RETURNING e.*
)
INSERT INTO onthedot.execution_history
       (shard, execution_id, job_id, user_id, task_id, queue, priority, status, disposition, trigger, run_key,
        retried_from, scheduled_time, due_at, first_due_at, parameters, timeout_seconds, max_attempts,
        attempt_number, lease_epoch, worker_id, claimed_at, started_at, completed_at, lateness_ms, error, batch_id,
        worker_deaths)
SELECT shard, execution_id, job_id, user_id, task_id, queue, priority, 'CANCELLED', 'cancelled', trigger, run_key,
       retried_from, scheduled_time, due_at, first_due_at, parameters, timeout_seconds, max_attempts,
       attempt_number, lease_epoch + 1, worker_id, claimed_at, started_at, now(), lateness_ms, error, batch_id,
       worker_deaths
  FROM ended
RETURNING execution_id
