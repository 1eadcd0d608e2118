-- reap_scheduled: free executions of one shard that were leased ahead by a worker that is gone. No attempt had begun.
-- $1 shard (int2), $2 limit (int4)
-- index: executions_lease (lease_expires_at). Never OR-ed into the claim: the planner would drop the partial index.
-- = ANY (ARRAY(…)): as in claim_due.sql
WITH lapsed AS MATERIALIZED (
    SELECT execution_id
      FROM onthedot.executions
     WHERE shard = $1 AND status = 'SCHEDULED' AND lease_expires_at < now()
     ORDER BY lease_expires_at
     LIMIT $2
       FOR UPDATE SKIP LOCKED
)
UPDATE onthedot.executions AS e
   SET status = CASE WHEN e.attempt_number > 0 THEN 'RETRYING' ELSE 'PENDING' END,
       due_at = greatest(e.due_at, now()), lease_epoch = e.lease_epoch + 1,
       worker_id = NULL, lease_expires_at = NULL, claimed_at = NULL
 WHERE e.shard = $1 AND e.execution_id = ANY (ARRAY(SELECT execution_id FROM lapsed))
RETURNING e.execution_id, e.queue, e.priority, e.due_at, e.limited
