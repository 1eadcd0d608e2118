-- due_jobs: lock up to $2 jobs of one shard whose coming occurrences must be materialised now.
-- $1 shard (int2), $2 limit (int4)
-- index: jobs_materialize. SKIP LOCKED: any number of materializers work side by side, without a leader.
SELECT job_id, schedule_type, expression, every_seconds, timezone, gap, fold, starts_at,
       ends_at, misfire, misfire_grace_seconds, materialized_until, now() AS now
  FROM onthedot.jobs
 WHERE shard = $1 AND materialize_at <= now()
 ORDER BY materialize_at
 LIMIT $2
   FOR NO KEY UPDATE SKIP LOCKED
