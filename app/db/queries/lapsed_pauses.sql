-- lapsed_pauses: jobs whose pause is over, the longest over first.
-- $1 limit (int4)
-- index: jobs_paused_until
SELECT job_id, version
  FROM onthedot.jobs
 WHERE paused_until <= now()
 ORDER BY paused_until
 LIMIT $1::int4
