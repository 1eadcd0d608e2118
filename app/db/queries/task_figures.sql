-- task_figures: how often tasks are used, when they last ran and how that went within a day.
-- $1 tasks (text[]), $2 most jobs to count of each (int4)
-- index: jobs_task; rollups_task (task_id, grain_seconds, bucket); history_newest; executions_lease
-- The counts lag behind a little, and know the last run to the minute: the newest executions tell it exactly.
WITH fresh AS MATERIALIZED (
    SELECT task_id, max(completed_at) AS ended_at
      FROM (SELECT task_id, completed_at
              FROM onthedot.execution_history
             ORDER BY scheduled_time DESC, execution_id DESC
             LIMIT 1000) AS newest
     GROUP BY task_id
), busy AS MATERIALIZED (
    SELECT task_id, count(*) AS running
      FROM onthedot.executions
     WHERE status = 'RUNNING' AND lease_expires_at > now() - interval '1 h'
     GROUP BY task_id
)
SELECT t.task_id, used.jobs::int4,
       coalesce((SELECT b.running FROM busy AS b WHERE b.task_id = t.task_id), 0)::int4 AS running,
       day.completed, day.failed,
       greatest((SELECT f.ended_at FROM fresh AS f WHERE f.task_id = t.task_id),
                by_minute.bucket, by_quarter.bucket) AS last_run_at
  FROM unnest($1::text[]) AS t (task_id)
 CROSS JOIN LATERAL (
       SELECT count(*) AS jobs
         FROM (SELECT FROM onthedot.jobs AS j WHERE j.task_id = t.task_id LIMIT $2::int4) AS counted) AS used
 CROSS JOIN LATERAL (
       SELECT coalesce(sum(executions) FILTER (WHERE status = 'COMPLETED'), 0)::int8 AS completed,
              coalesce(sum(executions) FILTER (WHERE status = 'FAILED'), 0)::int8 AS failed
         FROM onthedot.rollups AS r
        WHERE r.task_id = t.task_id AND r.grain_seconds = 900 AND r.bucket > now() - interval '1 day') AS day
  LEFT JOIN LATERAL (
       SELECT bucket
         FROM onthedot.rollups AS r
        WHERE r.task_id = t.task_id AND r.grain_seconds = 60
        ORDER BY bucket DESC
        LIMIT 1) AS by_minute ON true
  LEFT JOIN LATERAL (
       SELECT bucket
         FROM onthedot.rollups AS r
        WHERE r.task_id = t.task_id AND r.grain_seconds = 900
        ORDER BY bucket DESC
        LIMIT 1) AS by_quarter ON true
