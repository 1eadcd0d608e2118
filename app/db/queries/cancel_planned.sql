-- cancel_planned: end the execution of a one-shot job that is being deleted, if nobody has begun it.
-- $1 shard (int2), $2 job_id (uuid), $3 error (text, JSON)
-- index: executions_one_per_instant (job_id, …). Steps of runs of a workflow stay: they belong to something that has begun.
-- Locked in the order of their ids and then by these: as in replan_waiting.sql
WITH waiting AS MATERIALIZED (
    SELECT execution_id
      FROM onthedot.executions
     WHERE shard = $1 AND job_id = $2 AND trigger <> 'workflow' AND status IN ('BLOCKED', 'PENDING', 'SCHEDULED')
       AND attempt_number = 0
     ORDER BY execution_id
       FOR UPDATE
), ended AS (
    DELETE FROM onthedot.executions AS e
     WHERE e.shard = $1 AND e.execution_id = ANY (ARRAY(SELECT execution_id FROM waiting))
    RETURNING e.*
)
INSERT INTO onthedot.execution_history
       (shard, execution_id, job_id, user_id, task_id, queue, priority, status, disposition, trigger, run_key,
        retried_from, scheduled_time, due_at, first_due_at, parameters, timeout_seconds, max_attempts,
        attempt_number, lease_epoch, worker_id, claimed_at, started_at, completed_at, lateness_ms, error, batch_id)
SELECT shard, execution_id, job_id, user_id, task_id, queue, priority, 'CANCELLED', 'cancelled', trigger, run_key,
       retried_from, scheduled_time, due_at, first_due_at, parameters, timeout_seconds, max_attempts,
       attempt_number, lease_epoch + 1, worker_id, claimed_at, started_at, now(), lateness_ms, $3::jsonb, batch_id
  FROM ended
RETURNING execution_id
