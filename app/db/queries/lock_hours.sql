-- lock_hours: lock the counters of hours of users who have a quota until the transaction ends, and read them.
-- One element an hour, each once: $1 user_ids (text[]), $2 hours (timestamptz[]; null: this one); $3 how long to wait for
-- other transactions (text, such as 50ms): a lock_timeout that holds for this statement only
-- index: primary keys. In one order everywhere. Others' hours are not returned: they have no quota.
WITH usual AS MATERIALIZED (
    SELECT current_setting('lock_timeout') AS lock_timeout, set_config('lock_timeout', $3::text, true)
), wanted AS MATERIALIZED (
    SELECT u.user_id, coalesce(x.hour, date_trunc('hour', now(), 'UTC')) AS hour
      FROM unnest($1::text[], $2::timestamptz[]) AS x (user_id, hour)
      JOIN onthedot.users AS u ON u.user_id = x.user_id
     WHERE u.max_jobs_per_hour IS NOT NULL AND (SELECT lock_timeout FROM usual) IS NOT NULL
     GROUP BY 1, 2
), locked AS (
    INSERT INTO onthedot.hourly_counts AS h (user_id, hour, created)
    SELECT user_id, hour, 0 FROM wanted ORDER BY user_id, hour
        ON CONFLICT (user_id, hour) DO UPDATE SET created = h.created
    RETURNING user_id, hour, created
), written AS MATERIALIZED (
    SELECT l.user_id, l.hour, l.created, u.max_jobs_per_hour AS quota
      FROM locked AS l JOIN onthedot.users AS u ON u.user_id = l.user_id
), restored AS MATERIALIZED (
    SELECT set_config('lock_timeout', (SELECT lock_timeout FROM usual), true)
      FROM (SELECT count(*) FROM written) AS done
)
SELECT w.user_id, w.hour, w.created, w.quota, now() AS now
  FROM written AS w
 WHERE (SELECT count(*) FROM restored) > 0
