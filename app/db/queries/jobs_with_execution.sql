-- jobs_with_execution: jobs that run once, each with its own execution, wherever that is by now.
-- One element a job: $1 shards (int2[]), $2 job_ids (uuid[])
-- index: primary key of jobs; executions_one_per_instant; history_job (job_id, scheduled_time, execution_id)
SELECT j.*, coalesce(
           (SELECT e.execution_id
              FROM onthedot.executions AS e
             WHERE e.shard = j.shard AND e.job_id = j.job_id AND e.run_key = ''
             LIMIT 1),
           (SELECT h.execution_id
              FROM onthedot.execution_history AS h
             WHERE h.shard = j.shard AND h.job_id = j.job_id AND h.run_key = ''
             ORDER BY h.scheduled_time DESC, h.execution_id DESC
             LIMIT 1)) AS execution_id, now() AS now
  FROM unnest($1::int2[], $2::uuid[]) AS x (shard, job_id)
  JOIN onthedot.jobs AS j ON j.shard = x.shard AND j.job_id = x.job_id
