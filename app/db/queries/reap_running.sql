-- reap_running: executions of one shard whose worker let the lease lapse run again.
-- $1 shard (int2), $2 limit (int4), $3 error (text, JSON), $4 the end of an outage (timestamptz): a lease that ended
-- before it could not be renewed by anybody, and counts as nobody's death
-- A worker's death is no failure of what it ran: it is counted apart, and max_attempts grows with it. From the second on
-- an execution is a suspect (claim_suspect.sql); at the fourth reap_poison.sql has it.
-- A start that was not written down yet counts from the claim, as everywhere.
-- index: executions_lease (lease_expires_at). Reads only the row itself: no janitor can take the worker away first.
-- = ANY (ARRAY(…)): as in claim_due.sql
WITH lapsed AS MATERIALIZED (
    SELECT execution_id, worker_id, lease_epoch, coalesce(started_at, claimed_at) AS began_at,
           (lease_expires_at >= $4::timestamptz)::int AS death
      FROM onthedot.executions
     WHERE shard = $1 AND status = 'RUNNING' AND lease_expires_at < now()
       AND (worker_deaths < 3 OR lease_expires_at < $4::timestamptz)
       AND cancel_requested_at IS NULL
     ORDER BY lease_expires_at
     LIMIT $2
       FOR UPDATE SKIP LOCKED
), freed AS (
    UPDATE onthedot.executions AS e
       SET status = 'RETRYING', due_at = greatest(e.due_at, now()), lease_epoch = e.lease_epoch + 1,
           worker_id = NULL, lease_expires_at = NULL, claimed_at = NULL, error = $3::jsonb,
           worker_deaths = e.worker_deaths + lapsed.death, max_attempts = e.max_attempts + 1,
           started_at = lapsed.began_at,
           lateness_ms = coalesce(e.lateness_ms, 1000 * extract(epoch FROM lapsed.began_at - e.first_due_at))
      FROM lapsed
     WHERE e.shard = $1 AND e.execution_id = ANY (ARRAY(SELECT execution_id FROM lapsed))
       AND e.execution_id = lapsed.execution_id
    RETURNING e.shard, e.execution_id, e.attempt_number, lapsed.lease_epoch, lapsed.worker_id, e.started_at,
              e.error, e.queue, e.priority, e.due_at, e.worker_deaths, e.limited
), noted AS (
    INSERT INTO onthedot.attempts
           (shard, execution_id, attempt_number, lease_epoch, worker_id, started_at, ended_at, outcome, error)
    SELECT shard, execution_id, attempt_number, lease_epoch, worker_id, started_at, now(), 'lost', error
      FROM freed
)
SELECT execution_id, queue, priority, due_at, worker_deaths, limited FROM freed
