-- shards_to_plan: in which shards jobs wait to be materialised.
-- $1 shards (int2[])
-- index: jobs_materialize, its first entry in each shard. One statement instead of one a shard, while nothing is to be done.
-- Citus takes no lateral join over shards: there it is one statement a shard.
SELECT s.shard
  FROM unnest($1::int2[]) AS s (shard)
 CROSS JOIN LATERAL (
       SELECT FROM onthedot.jobs
        WHERE shard = s.shard AND materialize_at <= now()
        ORDER BY materialize_at
        LIMIT 1) AS first
