-- retry: end failed attempts of one shard and let their executions wait for the next one. Fenced like settle.
-- One that was interrupted has not failed: what its execution says went wrong stays what it was.
-- $1 shard (int2), and one element an execution: $2 execution_ids (uuid[]), $3 lease_epochs (int8[]),
-- $4 due_at of the next attempt (timestamptz[]), $5 started_at (timestamptz[]), $6 ended_at (timestamptz[]),
-- $7 lateness in ms (float8[]), $8 outcomes (text[]), $9 errors (text[], JSON), $10 attempts given back (int4[]),
-- $11 worker_id (uuid)
-- index: primary key. due_at is computed by the worker (on Citus, SET may not add an interval column to now()), but never
-- moves to before now(): low-water marks may have passed it while this was tried again and again.
WITH failed AS (
    UPDATE onthedot.executions AS e
       SET status = 'RETRYING', due_at = greatest(x.due_at, now()), lease_epoch = e.lease_epoch + 1, worker_id = NULL,
           lease_expires_at = NULL, claimed_at = NULL, started_at = x.started_at,
           lateness_ms = coalesce(e.lateness_ms, x.lateness_ms),
           error = CASE WHEN x.outcome = 'interrupted' THEN e.error ELSE x.error::jsonb END,
           max_attempts = e.max_attempts + x.given_back
      FROM unnest($2::uuid[], $3::int8[], $4::timestamptz[], $5::timestamptz[], $6::timestamptz[],
                  $7::float8[], $8::text[], $9::text[], $10::int4[])
           AS x (execution_id, lease_epoch, due_at, started_at, ended_at, lateness_ms, outcome, error, given_back)
     WHERE e.shard = $1 AND e.execution_id = x.execution_id AND e.lease_epoch = x.lease_epoch
       AND e.status = 'RUNNING'
    RETURNING e.shard, e.execution_id, e.attempt_number, x.lease_epoch, x.started_at, x.ended_at, x.outcome,
              x.error
)
INSERT INTO onthedot.attempts
       (shard, execution_id, attempt_number, lease_epoch, worker_id, started_at, ended_at, outcome, error)
SELECT shard, execution_id, attempt_number, lease_epoch, $11::uuid, started_at, ended_at, outcome, error::jsonb
  FROM failed
RETURNING execution_id
