-- skip_blocked: end executions of one shard that have waited for other jobs in vain.
-- $1 shard (int2), and one element an execution: $2 execution_ids (uuid[]), $3 errors (text[], JSON: what has ended how)
-- index: primary key. The rows are locked (blocked_executions.sql).
WITH ended AS (
    DELETE FROM onthedot.executions AS e
     USING unnest($2::uuid[], $3::text[]) AS x (execution_id, failure)
     WHERE e.shard = $1 AND e.execution_id = x.execution_id AND e.status = 'BLOCKED'
    RETURNING e.*, x.failure
)
INSERT INTO onthedot.execution_history
       (shard, execution_id, job_id, user_id, task_id, queue, priority, status, disposition, trigger, run_key,
        retried_from, scheduled_time, due_at, first_due_at, parameters, timeout_seconds, max_attempts,
        attempt_number, lease_epoch, completed_at, error, batch_id, worker_deaths)
SELECT shard, execution_id, job_id, user_id, task_id, queue, priority, 'SKIPPED', 'cancelled', trigger, run_key,
       retried_from, scheduled_time, due_at, first_due_at, parameters, timeout_seconds, max_attempts,
       attempt_number, lease_epoch + 1, now(), failure::jsonb, batch_id, worker_deaths
  FROM ended
RETURNING execution_id
