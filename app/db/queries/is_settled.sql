-- is_settled: whether an execution has ended under this lease.
-- $1 shard (int2), $2 execution_id (uuid), $3 lease_epoch (int8)
-- index: primary key
SELECT EXISTS (SELECT FROM onthedot.execution_history
                WHERE shard = $1 AND execution_id = $2 AND lease_epoch = $3) AS settled
