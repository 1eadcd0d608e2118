-- expire_unique_keys: drop keys that no job holds any more, of the next $2 keys after a place in their order.
-- $1 after this key_hash (bytea), $2 limit (int4)
-- index: primary keys; executions_one_per_instant (job_id, …). A key that somebody uses now is passed by.
WITH page AS MATERIALIZED (
    SELECT key_hash, shard, job_id, expires_at
      FROM onthedot.unique_keys
     WHERE key_hash > $1
     ORDER BY key_hash
     LIMIT $2
       FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM onthedot.unique_keys AS k
     USING page AS p
     WHERE k.key_hash = p.key_hash
       AND (p.expires_at <= now()
            OR NOT EXISTS (SELECT FROM onthedot.jobs AS j WHERE j.shard = p.shard AND j.job_id = p.job_id)
            OR (p.expires_at IS NULL AND NOT EXISTS (
                SELECT FROM onthedot.executions AS e WHERE e.shard = p.shard AND e.job_id = p.job_id)))
    RETURNING k.key_hash
)
SELECT (SELECT count(*) FROM gone)::int4 AS dropped, (SELECT count(*) FROM page)::int4 AS looked_at,
       (SELECT key_hash FROM page ORDER BY key_hash DESC LIMIT 1) AS upto
