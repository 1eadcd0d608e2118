-- arm: begin the attempts of SCHEDULED executions just before their instant. Only rows that come back may fire.
-- $1 shard (int2), $2 execution_ids (uuid[]), $3 lease_epochs (int8[])
-- index: primary key. Whoever changed the row first (cancel, pause, edit) raised lease_epoch: it is not returned.
-- Safe to repeat when the reply was lost: a row that is armed already comes back as it is.
UPDATE onthedot.executions AS e
   SET status = 'RUNNING', attempt_number = e.attempt_number + (e.status = 'SCHEDULED')::int
  FROM unnest($2::uuid[], $3::int8[]) AS x (execution_id, lease_epoch)
 WHERE e.shard = $1 AND e.execution_id = x.execution_id AND e.lease_epoch = x.lease_epoch
   AND e.status IN ('SCHEDULED', 'RUNNING')
RETURNING e.execution_id, e.lease_epoch, e.attempt_number
