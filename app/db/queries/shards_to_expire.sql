-- shards_to_expire: in which shards start deadlines have passed.
-- $1 shards (int2[])
-- index: executions_expiring (expires_at), its first entry in each shard
-- Citus takes no lateral join over shards: there it is one statement a shard.
SELECT s.shard
  FROM unnest($1::int2[]) AS s (shard)
 CROSS JOIN LATERAL (
       SELECT FROM onthedot.executions
        WHERE shard = s.shard AND expires_at <= now() AND status IN ('BLOCKED', 'PENDING')
        ORDER BY expires_at
        LIMIT 1) AS first
