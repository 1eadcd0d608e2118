-- skip_overlaps: end due executions of one shard that are not to begin while another one of their job is under way.
-- $1 shard (int2), $2 execution_ids (uuid[]), $3 error (text, JSON: why)
-- index: primary key. The rows are locked by the claim that found the other one, which holds the job's lock, too.
WITH ended AS (
    DELETE FROM onthedot.executions AS e
     WHERE e.shard = $1 AND e.execution_id = ANY ($2::uuid[])
    RETURNING e.*
)
INSERT INTO onthedot.execution_history
       (shard, execution_id, job_id, user_id, task_id, queue, priority, status, disposition, trigger, run_key,
        retried_from, scheduled_time, due_at, first_due_at, parameters, timeout_seconds, max_attempts,
        attempt_number, lease_epoch, worker_id, claimed_at, started_at, completed_at, lateness_ms, error, batch_id,
        worker_deaths)
SELECT shard, execution_id, job_id, user_id, task_id, queue, priority, 'SKIPPED', 'skipped_overlap', trigger, run_key,
       retried_from, scheduled_time, due_at, first_due_at, parameters, timeout_seconds, max_attempts,
       attempt_number, lease_epoch + 1, worker_id, claimed_at, started_at, now(), lateness_ms, $3::jsonb, batch_id,
       worker_deaths
  FROM ended
RETURNING execution_id
