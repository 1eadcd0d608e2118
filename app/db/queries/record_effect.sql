-- record_effect: record the result of what an execution has done under a key; no row: the lease is somebody else's.
-- $1 shard (int2), $2 execution_id (uuid), $3 lease_epoch (int8), $4 key (text), $5 result (text, JSON)
-- index: primary key. FOR KEY SHARE: nobody takes the execution over before this is committed.
-- A key that stands already stays as it is: it is this attempt's own, for keys are recalled before anything is done.
WITH ours AS MATERIALIZED (
    SELECT shard, execution_id, lease_epoch
      FROM onthedot.executions
     WHERE shard = $1 AND execution_id = $2 AND lease_epoch = $3 AND status = 'RUNNING'
       FOR KEY SHARE
), recorded AS (
    INSERT INTO onthedot.effects (shard, execution_id, key, result, lease_epoch)
    SELECT shard, execution_id, $4::text, $5::text::jsonb, lease_epoch FROM ours
        ON CONFLICT DO NOTHING
)
SELECT execution_id FROM ours
