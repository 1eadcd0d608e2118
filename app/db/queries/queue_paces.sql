-- queue_paces: how fast and how punctually executions have ended lately, by queue, and over all (queue is null).
-- $1 how far back to look in seconds (float8), $2 most rows to read of a queue, the newest (int4)
-- index: history_queue (queue, completed_at), read backwards
-- Where a queue had more than $2 in that time, its figures are over the newest $2: `span_seconds` says how long they
-- took. The overall percentiles then begin where the shortest of these begins, so that no queue weighs less than it ran.
WITH newest AS MATERIALIZED (
    SELECT h.*
      FROM onthedot.queues AS q
     CROSS JOIN LATERAL (
           SELECT h.queue, h.status, h.lateness_ms, h.completed_at,
                  1000 * extract(epoch FROM greatest(h.claimed_at - h.due_at, '0'))::float8 AS claim_ms,
                  1000 * extract(epoch FROM h.started_at - greatest(h.claimed_at, h.due_at))::float8 AS start_ms,
                  1000 * extract(epoch FROM h.completed_at - h.started_at)::float8 AS run_ms
             FROM onthedot.execution_history AS h
            WHERE h.queue = q.queue AND h.completed_at > now() - make_interval(secs => $1::float8)
            ORDER BY h.completed_at DESC
            LIMIT $2::int4) AS h
), whole AS (
    SELECT max(oldest) AS since
      FROM (SELECT min(completed_at) AS oldest FROM newest GROUP BY queue HAVING count(*) = $2::int4) AS cut
), sampled AS (
    SELECT * FROM newest
    UNION ALL
    SELECT NULL, status, lateness_ms, completed_at, claim_ms, start_ms, run_ms
      FROM newest, whole
     WHERE whole.since IS NULL OR completed_at >= whole.since
)
SELECT queue,
       count(*) FILTER (WHERE status = 'COMPLETED')::int4 AS completed,
       count(*) FILTER (WHERE status = 'FAILED')::int4 AS failed,
       CASE WHEN count(*) < $2::int4 THEN $1::float8
            ELSE greatest(extract(epoch FROM now() - min(completed_at))::float8, 0.001) END AS span_seconds,
       percentile_cont(ARRAY[0.5, 0.99]) WITHIN GROUP (ORDER BY lateness_ms) AS lateness_ms,
       max(lateness_ms) AS lateness_max_ms,
       percentile_cont(ARRAY[0.5, 0.99]) WITHIN GROUP (ORDER BY claim_ms) AS claim_ms,
       percentile_cont(ARRAY[0.5, 0.99]) WITHIN GROUP (ORDER BY start_ms) AS start_ms,
       percentile_cont(ARRAY[0.5, 0.99]) WITHIN GROUP (ORDER BY run_ms) AS run_ms
  FROM sampled
 GROUP BY queue
