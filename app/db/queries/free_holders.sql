-- free_holders: let leases that are over count against limits no more. A repeat finds nothing to do, and what has been claimed
-- anew counts under another epoch. Ahead of the sweep (stale_holders.sql), which would find them too.
-- $1 execution_ids (uuid[]), $2 lease_epochs (int8[])
-- index: limit_holders_execution (execution_id)
-- job:… stays: an execution that is to be tried again is under way, and the next one of its job waits for it.
DELETE FROM onthedot.limit_holders AS h
 USING unnest($1::uuid[], $2::int8[]) AS x (execution_id, lease_epoch)
 WHERE h.execution_id = x.execution_id AND h.lease_epoch = x.lease_epoch
   AND NOT (h.key LIKE 'job:%'
            AND EXISTS (SELECT FROM onthedot.executions AS e
                         WHERE e.shard = h.shard AND e.execution_id = h.execution_id AND e.status = 'RETRYING'))
