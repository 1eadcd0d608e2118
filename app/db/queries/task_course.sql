-- task_course: how a task's executions have ended, in spans of equal length, the last one under way; empty ones too.
-- $1 task (text), $2 length of a span in seconds, a multiple of 900 (int4), $3 how many spans (int4)
-- index: rollups_task (task_id, grain_seconds, bucket)
WITH spans AS (
    SELECT date_bin(make_interval(secs => $2::int4), now(), '2000-01-01Z') - n * make_interval(secs => $2::int4) AS begins_at
      FROM generate_series($3::int4 - 1, 0, -1) AS n
)
SELECT s.begins_at,
       coalesce(sum(r.executions) FILTER (WHERE r.status = 'COMPLETED'), 0)::int8 AS completed,
       coalesce(sum(r.executions) FILTER (WHERE r.status = 'FAILED'), 0)::int8 AS failed,
       coalesce(sum(r.executions) FILTER (WHERE r.status IN ('CANCELLED', 'SKIPPED')), 0)::int8 AS others,
       coalesce(sum(r.late), 0)::int8 AS late,
       coalesce(sum(r.run_ms_sum) FILTER (WHERE r.status IN ('COMPLETED', 'FAILED')), 0)::float8 AS run_ms_sum
  FROM spans AS s
  LEFT JOIN onthedot.rollups AS r
    ON r.task_id = $1::text AND r.grain_seconds = 900
   AND r.bucket >= s.begins_at AND r.bucket < s.begins_at + make_interval(secs => $2::int4)
 GROUP BY s.begins_at
 ORDER BY s.begins_at
