-- lock_jobs: read jobs of one shard and keep other changes off them until the transaction ends, as lock_job.sql does.
-- $1 shard (int2), $2 job_ids (uuid[])
-- index: primary key. In one order everywhere: by shard, then by id.
SELECT j.*, now() AS now
  FROM onthedot.jobs AS j
 WHERE j.shard = $1 AND j.job_id = ANY ($2::uuid[])
 ORDER BY j.job_id
   FOR UPDATE
