-- zoned_jobs: lock the next jobs of one shard whose instants follow the rules of a time zone.
-- $1 shard (int2), $2 after this job_id (uuid), $3 limit (int4)
-- index: primary key. Whoever changes one of them meanwhile is waited for: none must be passed by.
SELECT job_id, schedule_type, expression, every_seconds, timezone, gap, fold, starts_at,
       ends_at, misfire, misfire_grace_seconds, materialized_until, now() AS now
  FROM onthedot.jobs
 WHERE shard = $1 AND job_id > $2 AND schedule_type = 'RECURRING' AND is_active AND timezone <> 'UTC'
   AND (ends_at IS NULL OR ends_at > now())
 ORDER BY job_id
 LIMIT $3
   FOR NO KEY UPDATE
