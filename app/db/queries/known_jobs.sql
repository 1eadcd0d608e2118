-- known_jobs: which of these jobs are stored. Asked when the outcome of a commit is unknown.
-- One element a job: $1 shards (int2[]), $2 job_ids (uuid[])
-- index: primary key
SELECT j.job_id
  FROM unnest($1::int2[], $2::uuid[]) AS w (shard, job_id)
  JOIN onthedot.jobs AS j ON j.shard = w.shard AND j.job_id = w.job_id
