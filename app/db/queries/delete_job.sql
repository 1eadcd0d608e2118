-- delete_job: delete a job that is locked.
-- $1 shard (int2), $2 job_id (uuid)
-- index: primary key
DELETE FROM onthedot.jobs WHERE shard = $1 AND job_id = $2
