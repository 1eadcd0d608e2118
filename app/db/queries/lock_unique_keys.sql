-- lock_unique_keys: lock unique keys until the transaction ends, and read which jobs hold them.
-- $1 key_hashes (bytea[], each once), $2 how long to wait for other transactions (text, such as 50ms): a lock_timeout that
-- holds for this statement only
-- index: primary key. In one order everywhere. A key that nobody has had is made; job_id null: it is free.
WITH usual AS MATERIALIZED (
    SELECT current_setting('lock_timeout') AS lock_timeout, set_config('lock_timeout', $2::text, true)
), locked AS (
    INSERT INTO onthedot.unique_keys AS k (key_hash)
    SELECT x.key_hash
      FROM unnest($1::bytea[]) AS x (key_hash)
     WHERE (SELECT lock_timeout FROM usual) IS NOT NULL
     ORDER BY x.key_hash
        ON CONFLICT (key_hash) DO UPDATE SET key_hash = excluded.key_hash
    RETURNING key_hash, shard, job_id, expires_at
), written AS MATERIALIZED (
    SELECT * FROM locked
), restored AS MATERIALIZED (
    SELECT set_config('lock_timeout', (SELECT lock_timeout FROM usual), true)
      FROM (SELECT count(*) FROM written) AS done
)
SELECT w.key_hash, w.shard, w.job_id, w.expires_at IS NOT NULL AS has_end, w.expires_at > now() AS goes_on
  FROM written AS w
 WHERE (SELECT count(*) FROM restored) > 0 AND w.job_id IS NOT NULL
