-- lock_job: read a job and keep the materializer and other changes off it until the transaction ends.
-- $1 shard (int2), $2 job_id (uuid)
-- index: primary key. One lock order everywhere: first the job, then its executions.
SELECT j.*, now() AS now
  FROM onthedot.jobs AS j
 WHERE j.shard = $1 AND j.job_id = $2
   FOR UPDATE
