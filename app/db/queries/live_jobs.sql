-- live_jobs: which of these jobs exist, and whether an execution of them has not ended.
-- One element a job: $1 shards (int2[]), $2 job_ids (uuid[])
-- index: primary key of jobs; executions_one_per_instant (job_id, …)
SELECT j.job_id,
       EXISTS (SELECT FROM onthedot.executions AS e WHERE e.shard = j.shard AND e.job_id = j.job_id) AS is_live
  FROM unnest($1::int2[], $2::uuid[]) AS x (shard, job_id)
  JOIN onthedot.jobs AS j ON j.shard = x.shard AND j.job_id = x.job_id
