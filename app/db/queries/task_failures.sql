-- task_failures: the newest failures of a task, among the newest 5,000 failures of the house.
-- $1 task (text), $2 most to return (int4)
-- index: history_status (status, scheduled_time, execution_id), read backwards
-- How many are looked through stands here: of a number that comes later the planner fears so many that it sorts them all.
SELECT f.execution_id, f.job_id, j.name AS job_name, f.scheduled_time, f.completed_at, f.attempt_number,
       f.max_attempts, f.error - 'traceback' AS error
  FROM (SELECT *
          FROM onthedot.execution_history
         WHERE status = 'FAILED'
         ORDER BY scheduled_time DESC, execution_id DESC
         LIMIT 5000) AS f
  LEFT JOIN onthedot.jobs AS j ON j.shard = f.shard AND j.job_id = f.job_id
 WHERE f.task_id = $1::text
 ORDER BY f.scheduled_time DESC, f.execution_id DESC
 LIMIT $2::int4
