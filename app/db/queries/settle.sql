-- settle: move finished executions of one shard to the history. Rows whose lease is ours no longer stay untouched
-- and are not returned.
-- $1 shard (int2), and one element an execution: $2 execution_ids (uuid[]), $3 lease_epochs (int8[]),
-- $4 statuses (text[]), $5 dispositions (text[]), $6 started_at (timestamptz[]), $7 completed_at (timestamptz[]),
-- $8 lateness in ms (float8[]), $9 results (text[], JSON), $10 result_truncated (bool[]), $11 errors (text[], JSON)
-- index: primary key
WITH ended AS (
    DELETE FROM onthedot.executions AS e
     USING unnest($2::uuid[], $3::int8[], $4::text[], $5::text[], $6::timestamptz[], $7::timestamptz[],
                  $8::float8[], $9::text[], $10::bool[], $11::text[])
           AS x (execution_id, lease_epoch, status, disposition, started_at, completed_at,
                 lateness_ms, result, result_truncated, error)
     WHERE e.shard = $1 AND e.execution_id = x.execution_id AND e.lease_epoch = x.lease_epoch
       AND e.status = 'RUNNING'
    RETURNING e.shard, e.execution_id, e.job_id, e.user_id, e.task_id, e.queue, e.priority, x.status,
              x.disposition, e.trigger, e.run_key, e.retried_from, e.scheduled_time, e.due_at, e.first_due_at,
              e.parameters, e.timeout_seconds, e.max_attempts, e.attempt_number, e.lease_epoch, e.worker_id,
              e.claimed_at, x.started_at, x.completed_at, coalesce(e.lateness_ms, x.lateness_ms) AS lateness_ms,
              x.result, x.result_truncated,
              CASE WHEN x.status = 'CANCELLED' THEN e.error ELSE x.error::jsonb END AS error, e.batch_id,
              e.worker_deaths
)
INSERT INTO onthedot.execution_history
       (shard, execution_id, job_id, user_id, task_id, queue, priority, status,
        disposition, trigger, run_key, retried_from, scheduled_time, due_at, first_due_at,
        parameters, timeout_seconds, max_attempts, attempt_number, lease_epoch, worker_id,
        claimed_at, started_at, completed_at, lateness_ms,
        result, result_truncated, error, batch_id, worker_deaths)
SELECT shard, execution_id, job_id, user_id, task_id, queue, priority, status,
       disposition, trigger, run_key, retried_from, scheduled_time, due_at, first_due_at,
       parameters, timeout_seconds, max_attempts, attempt_number, lease_epoch, worker_id,
       claimed_at, started_at, completed_at, lateness_ms,
       result::jsonb, result_truncated, error, batch_id, worker_deaths
  FROM ended
RETURNING execution_id
