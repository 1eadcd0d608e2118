-- cancel_steps: end the executions of a run that have not begun: move them to the history as CANCELLED.
-- $1 shard (int2), $2 the beginning of their run_key (text), $3 error (text, JSON: who cancelled them and why)
-- index: executions_step (run_key). Locked in the order of their ids and then by these: as in replan_waiting.sql
WITH waiting AS MATERIALIZED (
    SELECT execution_id
      FROM onthedot.executions
     WHERE shard = $1 AND trigger = 'workflow' AND run_key COLLATE "C" > $2 AND run_key COLLATE "C" < $2 || '~'
       AND status IN ('BLOCKED', 'PENDING', 'SCHEDULED', 'RETRYING')
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
        attempt_number, lease_epoch, worker_id, claimed_at, started_at, completed_at, lateness_ms, error, batch_id,
        worker_deaths)
SELECT shard, execution_id, job_id, user_id, task_id, queue, priority, 'CANCELLED', 'cancelled', trigger, run_key,
       retried_from, scheduled_time, due_at, first_due_at, parameters, timeout_seconds, max_attempts,
       attempt_number, lease_epoch + 1, worker_id, claimed_at, started_at, now(), lateness_ms, $3::text::jsonb, batch_id,
       worker_deaths
  FROM ended
RETURNING execution_id
