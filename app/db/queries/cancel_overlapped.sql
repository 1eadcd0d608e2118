-- cancel_overlapped: ask what runs of jobs of one shard to stop, as the next one of each is due and is not to wait for it.
-- $1 shard (int2), $2 keys of the jobs (text[]), $3 error (text, JSON: why)
-- index: primary keys. SKIP LOCKED: a row that another session writes is asked when the next one is looked at again.
WITH running AS MATERIALIZED (
    SELECT e.execution_id
      FROM onthedot.limit_holders AS h
      JOIN onthedot.executions AS e ON e.shard = $1 AND e.execution_id = h.execution_id
     WHERE h.key = ANY ($2::text[]) AND e.cancel_requested_at IS NULL
       FOR UPDATE OF e SKIP LOCKED
)
UPDATE onthedot.executions AS e
   SET cancel_requested_at = now(), error = $3::jsonb
 WHERE e.shard = $1 AND e.execution_id = ANY (ARRAY(SELECT execution_id FROM running))
RETURNING e.execution_id, e.worker_id
