-- expire_jobs: delete those of the locked jobs of one shard that have no live execution.
-- $1 shard (int2), $2 job_ids (uuid[])
-- index: primary key; executions_one_per_instant (job_id, …)
-- A statement after the lock: it sees every execution that was made before, and none can be made since.
DELETE FROM onthedot.jobs AS j
 WHERE j.shard = $1 AND j.job_id = ANY ($2::uuid[])
   AND NOT EXISTS (SELECT FROM onthedot.executions AS e WHERE e.shard = $1 AND e.job_id = j.job_id)
RETURNING j.job_id
