-- queue_loads: what waits and runs in each queue now.
-- $1 most rows to count of a queue and priority (int4)
-- index: executions_ready (queue, priority, limited, due_at), one short scan a priority: what is not due yet costs nothing,
-- and a million rows that wait cost what $1 of them cost. executions_lease holds no more than the workers carry,
-- executions_suspects next to nothing.
SELECT q.queue, least(w.depth + coalesce(s.depth, 0), $1::int4)::int4 AS depth,
       extract(epoch FROM now() - least(w.oldest_due_at, s.oldest_due_at))::float8 AS oldest_due_seconds,
       coalesce(r.running, 0) AS running
  FROM onthedot.queues AS q
 CROSS JOIN LATERAL (
       SELECT sum(p.depth) AS depth, min(p.oldest_due_at) AS oldest_due_at
         FROM (VALUES (0::int2), (1::int2), (2::int2), (3::int2)) AS l (priority)
     CROSS JOIN (VALUES (false), (true)) AS k (limited)
        CROSS JOIN LATERAL (
              SELECT count(*) AS depth, min(due_at) AS oldest_due_at
                FROM (SELECT due_at
                        FROM onthedot.executions AS e
                       WHERE e.queue = q.queue AND e.priority = l.priority AND e.limited = k.limited
                         AND e.status IN ('PENDING', 'RETRYING') AND NOT e.held AND e.worker_deaths < 2
                         AND e.due_at <= now()
                       ORDER BY e.due_at
                       LIMIT $1::int4) AS due) AS p) AS w
  LEFT JOIN (SELECT queue, count(*) AS depth, min(due_at) AS oldest_due_at
               FROM onthedot.executions
              WHERE worker_deaths >= 2 AND status IN ('PENDING', 'RETRYING') AND NOT held AND due_at <= now()
              GROUP BY queue) AS s ON s.queue = q.queue
  LEFT JOIN (SELECT queue, count(*)::int4 AS running
               FROM onthedot.executions
              WHERE status = 'RUNNING'
              GROUP BY queue) AS r ON r.queue = q.queue
