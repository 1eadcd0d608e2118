-- cancel_waiting: end an execution that has not begun: move it to the history as CANCELLED. It will never run.
-- $1 shard (int2), $2 execution_id (uuid), $3 error (text, JSON: who cancelled it and why)
-- index: primary key. A SCHEDULED row is taken back from its worker: what is deleted cannot be armed.
WITH ended AS (
    DELETE FROM onthedot.executions AS e
     WHERE e.shard = $1 AND e.execution_id = $2
       AND e.status IN ('BLOCKED', 'PENDING', 'SCHEDULED', 'RETRYING')
    RETURNING e.*
)
INSERT INTO onthedot.execution_history
       (shard, execution_id, job_id, user_id, task_id, queue, priority, status, disposition, trigger, run_key,
        retried_from, scheduled_time, due_at, first_due_at, parameters, timeout_seconds, max_attempts,
        attempt_number, lease_epoch, worker_id, claimed_at, started_at, completed_at, lateness_ms, error, batch_id,
        worker_deaths)
SELECT shard, execution_id, job_id, user_id, task_id, queue, priority, 'CANCELLED', 'cancelled', trigger, run_key,
       retried_from, scheduled_time, due_at, first_due_at, parameters, timeout_seconds, max_attempts,
       attempt_number, lease_epoch + 1, worker_id, claimed_at, started_at, now(), lateness_ms, $3::jsonb, batch_id,
       worker_deaths
  FROM ended
RETURNING execution_id
