-- begun_of_job: the live executions of a job that have begun; changes of the job leave them alone.
-- $1 shard (int2), $2 job_id (uuid)
-- index: executions_one_per_instant (job_id, …)
SELECT execution_id, scheduled_time
  FROM onthedot.executions
 WHERE shard = $1 AND job_id = $2 AND (status = 'RUNNING' OR attempt_number > 0)
 ORDER BY scheduled_time, execution_id
