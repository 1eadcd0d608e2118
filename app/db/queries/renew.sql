-- renew: prolong the leases of executions that are still running, and note when they began.
-- $1 shard (int2), $2 execution_ids (uuid[]), $3 lease_epochs (int8[]), $4 leases in seconds (float8[]),
-- $5 started_at (timestamptz[]; null: not begun)
-- index: primary key. SKIP LOCKED: one row that somebody else holds must not keep the others from living on;
-- it is renewed at the next turn. Rows that are ours no longer are not returned.
WITH mine AS MATERIALIZED (
    SELECT e.execution_id, x.lease_seconds, x.started_at
      FROM onthedot.executions AS e
      JOIN unnest($2::uuid[], $3::int8[], $4::float8[], $5::timestamptz[])
           AS x (execution_id, lease_epoch, lease_seconds, started_at)
        ON e.execution_id = x.execution_id AND e.lease_epoch = x.lease_epoch
     WHERE e.shard = $1 AND e.status IN ('SCHEDULED', 'RUNNING')
       FOR NO KEY UPDATE OF e SKIP LOCKED
)
UPDATE onthedot.executions AS e
   SET lease_expires_at = now() + make_interval(secs => mine.lease_seconds), started_at = mine.started_at
  FROM mine
 WHERE e.shard = $1 AND e.execution_id = mine.execution_id
RETURNING e.execution_id, e.lease_epoch
