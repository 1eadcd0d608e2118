-- failing_jobs: jobs whose newest run failed, within a day, the last failed first; with how often of late, and since when.
-- $1 newest failures to look at (int4), $2 jobs to return (int4)
-- index: history_status (status, scheduled_time, execution_id), read backwards in the days concerned; history_job to see
-- whether a job has completed since; jobs' primary key: a job that was deleted fails no more.
WITH failures AS MATERIALIZED (
    SELECT shard, job_id, execution_id, task_id, scheduled_time, completed_at, error
      FROM onthedot.execution_history
     WHERE status = 'FAILED' AND scheduled_time > now() - interval '1 day'
       AND completed_at BETWEEN now() - interval '1 day' AND now() + interval '1 min'
     ORDER BY scheduled_time DESC, execution_id DESC
     LIMIT $1::int4
), newest AS MATERIALIZED (
    SELECT DISTINCT ON (job_id) *, count(*) OVER of_job AS failures, min(completed_at) OVER of_job AS since
      FROM failures
    WINDOW of_job AS (PARTITION BY job_id)
     ORDER BY job_id, scheduled_time DESC
), failing AS MATERIALIZED (
    SELECT f.*, j.name AS job_name, j.user_id
      FROM newest AS f
      JOIN onthedot.jobs AS j ON j.shard = f.shard AND j.job_id = f.job_id
     WHERE NOT EXISTS (
           SELECT FROM onthedot.execution_history AS h
            WHERE h.job_id = f.job_id AND h.scheduled_time > f.scheduled_time AND h.status = 'COMPLETED'
              AND h.completed_at BETWEEN now() - interval '1 day' AND now() + interval '1 min')
)
SELECT job_id, job_name, user_id, task_id, execution_id, completed_at AS failed_at, error, failures::int4, since,
       (SELECT count(*)::int4 FROM failing) AS total, (SELECT count(*) = $1::int4 FROM failures) AS more
  FROM failing
 ORDER BY completed_at DESC
 LIMIT $2::int4
