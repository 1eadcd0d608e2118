-- shards_to_reap: in which shards leases have lapsed, or executions wait that somebody has asked to stop.
-- $1 shards (int2[])
-- index: executions_lease (lease_expires_at), its first entry in each shard; executions_cancelling, which holds next to
-- nothing. One statement instead of four a shard, while nobody has died.
-- Citus takes no lateral join over shards: there it is one statement a shard.
SELECT s.shard
  FROM unnest($1::int2[]) AS s (shard)
 CROSS JOIN LATERAL (
       (SELECT FROM onthedot.executions
         WHERE shard = s.shard AND status IN ('SCHEDULED', 'RUNNING') AND lease_expires_at < now()
         ORDER BY lease_expires_at
         LIMIT 1)
       UNION ALL
       (SELECT FROM onthedot.executions
         WHERE shard = s.shard AND cancel_requested_at IS NOT NULL AND status IN ('PENDING', 'RETRYING')
         ORDER BY worker_id
         LIMIT 1)
       LIMIT 1) AS first
