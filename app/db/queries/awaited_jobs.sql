-- awaited_jobs: the jobs that others depend on.
-- $1 limit (int4)
-- index: jobs_dependent
SELECT DISTINCT unnest(depends_on) AS job_id FROM onthedot.jobs WHERE depends_on <> '{}' LIMIT $1
