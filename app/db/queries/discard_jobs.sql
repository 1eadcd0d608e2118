-- discard_jobs: take back jobs and executions created in this very transaction.
-- $1 job_ids (uuid[])
-- index: primary key of jobs; executions_one_per_instant (job_id, …)
WITH planned AS (
    DELETE FROM onthedot.executions WHERE job_id = ANY ($1::uuid[])
)
DELETE FROM onthedot.jobs WHERE job_id = ANY ($1::uuid[])
