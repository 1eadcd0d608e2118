-- lock_planned: which of these locked jobs of one shard have an execution that nobody has begun; it is kept so until the
-- transaction ends. A row that a claim holds at this moment is waited for, and left out if it was begun.
-- $1 shard (int2), $2 job_ids (uuid[])
-- index: executions_one_per_instant (job_id, …)
SELECT job_id
  FROM onthedot.executions
 WHERE shard = $1 AND job_id = ANY ($2::uuid[]) AND trigger = 'schedule' AND run_key = ''
   AND status IN ('PENDING', 'SCHEDULED') AND attempt_number = 0
 ORDER BY execution_id
   FOR UPDATE
