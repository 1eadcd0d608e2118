-- roll_up: count what ended since the last time into rollups, once; other processes that do the same are passed over.
-- $1 longest span to count in seconds (float8), $2 how far to stay behind the present in seconds (float8)
-- index: history_queue (queue, completed_at), one range a queue, in the days of the span only. Scalar queries and OFFSET 0:
-- joined with `state`, the whole day of each queue was read for the last five seconds of it.
-- Returns until when is counted and whether there is more; no row: another process is at it.
WITH state AS MATERIALIZED (
    SELECT rolled_until AS since,
           least(rolled_until + make_interval(secs => $1::float8), now() - make_interval(secs => $2::float8)) AS until
      FROM onthedot.rollup_state
       FOR UPDATE SKIP LOCKED
), ended AS MATERIALIZED (
    SELECT date_bin('1 min', h.completed_at, '2000-01-01Z') AS minute, h.queue, h.task_id, h.status, count(*) AS executions,
           count(*) FILTER (WHERE h.disposition = 'late') AS late, coalesce(sum(h.lateness_ms), 0) AS lateness_ms_sum,
           max(h.lateness_ms) AS lateness_ms_max,
           coalesce(1000 * extract(epoch FROM sum(h.completed_at - h.started_at)), 0)::float8 AS run_ms_sum
      FROM onthedot.queues AS q
     CROSS JOIN LATERAL (
           SELECT completed_at, started_at, queue, task_id, status, disposition, lateness_ms
             FROM onthedot.execution_history AS h
            WHERE h.queue = q.queue
              AND h.completed_at >= (SELECT since FROM state) AND h.completed_at < (SELECT until FROM state)
           OFFSET 0) AS h
     GROUP BY 1, 2, 3, 4
), counted AS (
    INSERT INTO onthedot.rollups AS r
    SELECT grain, date_bin(make_interval(secs => grain), minute, '2000-01-01Z'), queue, task_id, status,
           sum(executions)::int8, sum(late)::int8, sum(lateness_ms_sum), max(lateness_ms_max), sum(run_ms_sum)
      FROM ended
     CROSS JOIN (VALUES (60), (900)) AS g (grain)
     GROUP BY 1, 2, 3, 4, 5
        ON CONFLICT (grain_seconds, bucket, queue, task_id, status) DO UPDATE
       SET executions = r.executions + excluded.executions, late = r.late + excluded.late,
           lateness_ms_sum = r.lateness_ms_sum + excluded.lateness_ms_sum,
           lateness_ms_max = greatest(r.lateness_ms_max, excluded.lateness_ms_max),
           run_ms_sum = r.run_ms_sum + excluded.run_ms_sum
)
UPDATE onthedot.rollup_state AS s
   SET rolled_until = greatest(state.until, state.since)
  FROM state
RETURNING s.rolled_until, state.until > state.since AND s.rolled_until < now() - make_interval(secs => $2::float8) AS more
