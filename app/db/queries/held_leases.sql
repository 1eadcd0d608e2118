-- held_leases: which of these executions are still ours, after a renewal did not return them.
-- $1 shard (int2), $2 execution_ids (uuid[]), $3 lease_epochs (int8[])
-- index: primary key. A row that was merely locked is still ours; one with another epoch, or gone, is lost.
SELECT e.execution_id, e.lease_epoch
  FROM onthedot.executions AS e
  JOIN unnest($2::uuid[], $3::int8[]) AS x (execution_id, lease_epoch)
    ON e.execution_id = x.execution_id AND e.lease_epoch = x.lease_epoch
 WHERE e.shard = $1 AND e.status IN ('SCHEDULED', 'RUNNING')
