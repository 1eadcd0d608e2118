-- lock_workflow: let one run of a workflow begin at a time, where runs must not overlap.
-- $1 shard (int2), $2 workflow_id (uuid)
-- index: primary key of jobs
SELECT job_id FROM onthedot.jobs WHERE shard = $1 AND job_id = $2 FOR NO KEY UPDATE
