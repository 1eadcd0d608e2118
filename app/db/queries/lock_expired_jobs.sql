-- lock_expired_jobs: lock up to $5 jobs of one shard that ran once, long ago; the next after a place in the order.
-- $1 shard (int2), $2 retention in days (int4), $3 after created_at (timestamptz), $4 and job_id (uuid), $5 limit (int4)
-- index: jobs_created. Recurring jobs between them are passed over once a sweep, not once a batch.
-- A lock, so that nobody runs them again before expire_jobs.sql has looked; those that somebody holds are in use.
SELECT job_id, created_at
  FROM onthedot.jobs
 WHERE shard = $1 AND schedule_type IN ('IMMEDIATE', 'ONCE')
   AND created_at < now() - make_interval(days => $2::int4) AND (created_at, job_id) > ($3::timestamptz, $4::uuid)
   AND greatest(updated_at, scheduled_time) < now() - make_interval(days => $2::int4)
 ORDER BY created_at, job_id
 LIMIT $5::int4
   FOR UPDATE SKIP LOCKED
