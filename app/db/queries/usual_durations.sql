-- usual_durations: what 95 of 100 of the newest completed runs of each job stayed below, in seconds.
-- one element a job: $1 shards (int2[]), $2 job_ids (uuid[]); $3 newest runs to measure of each (int4),
-- $4 fewest that tell anything (int4)
-- index: history_job (job_id, scheduled_time, execution_id), read backwards
SELECT j.job_id, percentile_cont(0.95) WITHIN GROUP (ORDER BY h.seconds) AS seconds
  FROM unnest($1::int2[], $2::uuid[]) AS j (shard, job_id)
 CROSS JOIN LATERAL (
       SELECT extract(epoch FROM h.completed_at - h.started_at)::float8 AS seconds
         FROM onthedot.execution_history AS h
        WHERE h.shard = j.shard AND h.job_id = j.job_id AND h.status = 'COMPLETED'
        ORDER BY h.scheduled_time DESC, h.execution_id DESC
        LIMIT $3::int4) AS h
 GROUP BY j.job_id
HAVING count(*) >= $4::int4
