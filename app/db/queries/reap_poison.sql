-- reap_poison: executions of one shard that have ended, or stopped, four workers have failed: the last two of them ran
-- nothing else (claim_suspect.sql), so it was their doing.
-- $1 shard (int2), $2 limit (int4), $3 error (text, JSON), $4 the end of an outage (timestamptz; see reap_running.sql)
-- index: executions_suspects (due_at), which holds next to nothing. = ANY (ARRAY(…)): as in claim_due.sql
WITH lapsed AS MATERIALIZED (
    SELECT execution_id
      FROM onthedot.executions
     WHERE shard = $1 AND status = 'RUNNING' AND lease_expires_at < now() AND worker_deaths >= 3
       AND lease_expires_at >= $4::timestamptz
       AND cancel_requested_at IS NULL
     ORDER BY lease_expires_at
     LIMIT $2
       FOR UPDATE SKIP LOCKED
), ended AS (
    DELETE FROM onthedot.executions AS e
     WHERE e.shard = $1 AND e.execution_id = ANY (ARRAY(SELECT execution_id FROM lapsed))
    RETURNING e.shard, e.execution_id, e.job_id, e.user_id, e.task_id, e.queue, e.priority, e.trigger, e.run_key,
              e.retried_from, e.scheduled_time, e.due_at, e.first_due_at, e.parameters, e.timeout_seconds,
              e.max_attempts + 1 AS max_attempts, e.attempt_number, e.lease_epoch, e.worker_id, e.claimed_at,
              coalesce(e.started_at, e.claimed_at) AS started_at,
              coalesce(e.lateness_ms, 1000 * extract(epoch FROM coalesce(e.started_at, e.claimed_at) - e.first_due_at))
              AS lateness_ms, e.batch_id, e.worker_deaths + 1 AS worker_deaths
)
INSERT INTO onthedot.execution_history
       (shard, execution_id, job_id, user_id, task_id, queue, priority, status, disposition, trigger, run_key,
        retried_from, scheduled_time, due_at, first_due_at, parameters, timeout_seconds, max_attempts,
        attempt_number, lease_epoch, worker_id, claimed_at, started_at, completed_at, lateness_ms, error, batch_id,
        worker_deaths)
SELECT shard, execution_id, job_id, user_id, task_id, queue, priority, 'FAILED', 'failed', trigger, run_key,
       retried_from, scheduled_time, due_at, first_due_at, parameters, timeout_seconds, max_attempts,
       attempt_number, lease_epoch + 1, worker_id, claimed_at, started_at, now(), lateness_ms, $3::jsonb, batch_id,
       worker_deaths
  FROM ended
RETURNING execution_id
