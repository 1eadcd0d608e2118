-- free_holders: let leases that are over count against limits no more. A repeat finds nothing to do, and what has been claimed
-- anew counts under another epoch. Ahead of the sweep (stale_holders.sql), which would find them too.
-- $1 execution_ids (uuid[]), $2 lease_epochs (int8[])
-- index: limit_holders_execution (execution_id)
-- job:… stays: an execution that is to be tried again is under way, and the next one of its job waits for it.
-- SKIP LOCKED: whoever holds such a row deletes it, or claims it anew. Nobody that deletes here waits for another, so that
-- in whatever order rows are met, no two wait for each other.
WITH over AS MATERIALIZED (
    SELECT h.ctid
      FROM unnest($1::uuid[], $2::int8[]) AS x (execution_id, lease_epoch)
      JOIN onthedot.limit_holders AS h ON h.execution_id = x.execution_id AND h.lease_epoch = x.lease_epoch
     WHERE NOT (h.key LIKE 'job:%'
                AND EXISTS (SELECT FROM onthedot.executions AS e
                             WHERE e.shard = h.shard AND e.execution_id = h.execution_id AND e.status = 'RETRYING'))
       FOR UPDATE OF h SKIP LOCKED
)
DELETE FROM onthedot.limit_holders AS h
 WHERE h.ctid = ANY (ARRAY(SELECT ctid FROM over))
