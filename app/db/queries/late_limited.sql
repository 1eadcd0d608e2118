-- late_limited: executions that come under limits and have waited for longer than their queue promises, the longest overdue first, and
-- what limits them, as the claim sees it (candidates_*.sql): what waits for a limit is not late.
-- $1 how many of each queue and priority to look at (int4)
-- index: executions_ready (queue, priority, limited, due_at), the head of each queue and priority; executions_suspects
WITH promised AS MATERIALIZED (
    SELECT queue, max_concurrency, rate_per_second, rate_burst,
           now() - make_interval(secs => coalesce(max_delay_ms, 2000) / 1000.0) AS due_before
      FROM onthedot.queues
     WHERE paused_at IS NULL OR paused_until <= now()
), late AS MATERIALIZED (
    SELECT e.*
      FROM promised AS q
     CROSS JOIN (VALUES (0::int2), (1::int2), (2::int2), (3::int2)) AS l (priority)
     CROSS JOIN LATERAL (
           SELECT *
             FROM onthedot.executions AS e
            WHERE e.queue = q.queue AND e.priority = l.priority AND e.limited AND e.status IN ('PENDING', 'RETRYING')
              AND NOT e.held AND e.worker_deaths < 2 AND e.due_at < q.due_before
            ORDER BY e.due_at
            LIMIT $1::int4) AS e
    UNION ALL
    SELECT e.*
      FROM onthedot.executions AS e JOIN promised AS q ON q.queue = e.queue
     WHERE e.status IN ('PENDING', 'RETRYING') AND NOT e.held AND e.worker_deaths >= 2 AND e.limited
       AND e.due_at < q.due_before
     ORDER BY due_at
)
SELECT c.execution_id, c.job_id, c.user_id, c.task_id, c.due_at, c.trigger, c.attempt_number, c.overlap, c.limited,
       c.concurrency_key, c.concurrency_limit,
       u.max_concurrent_jobs, u.rate_per_second AS user_rate, u.rate_burst AS user_burst,
       t.concurrency, t.rate_per_second AS task_rate, t.rate_burst AS task_burst, t.cpu_cores, t.memory_mb,
       q.max_concurrency, q.rate_per_second AS queue_rate, q.rate_burst AS queue_burst,
       c.queue
  FROM late AS c
  JOIN promised AS q ON q.queue = c.queue
  LEFT JOIN onthedot.users AS u ON u.user_id = c.user_id
  LEFT JOIN onthedot.tasks AS t ON t.task_id = c.task_id
 ORDER BY c.due_at
