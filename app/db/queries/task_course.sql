-- task_course: how a task's executions have ended, in spans of equal length, the last one under way; empty ones too.
-- $1 task (text), $2 length of a span in seconds, a multiple of 900 (int4), $3 how many spans (int4)
-- index: rollups_task (task_id, grain_seconds, bucket)
WITH spans AS MATERIALIZED (
    SELECT date_bin(make_interval(secs => $2::int4), now(), '2000-01-01Z') - n * make_interval(secs => $2::int4) AS begins_at
      FROM generate_series($3::int4 - 1, 0, -1) AS n
), counted AS MATERIALIZED (  -- counted first: joined with a range, each span would be compared with each row
    SELECT date_bin(make_interval(secs => $2::int4), bucket, '2000-01-01Z') AS begins_at,
           sum(executions) FILTER (WHERE status = 'COMPLETED') AS completed,
           sum(executions) FILTER (WHERE status = 'FAILED') AS failed,
           sum(executions) FILTER (WHERE status IN ('CANCELLED', 'SKIPPED')) AS others,
           sum(late) AS late,
           sum(run_ms_sum) FILTER (WHERE status IN ('COMPLETED', 'FAILED')) AS run_ms_sum
      FROM onthedot.rollups
     WHERE task_id = $1::text AND grain_seconds = 900 AND bucket >= (SELECT min(begins_at) FROM spans)
     GROUP BY 1
)
SELECT s.begins_at, coalesce(c.completed, 0)::int8 AS completed, coalesce(c.failed, 0)::int8 AS failed,
       coalesce(c.others, 0)::int8 AS others, coalesce(c.late, 0)::int8 AS late,
       coalesce(c.run_ms_sum, 0)::float8 AS run_ms_sum
  FROM spans AS s
  LEFT JOIN counted AS c USING (begins_at)
 ORDER BY s.begins_at
