-- upcoming: executions that come next, of all queues.
-- $1 how many (int4)
-- index: executions_ready (queue, priority, limited, due_at), the first ones of each queue and priority; suspects are left out
WITH next AS MATERIALIZED (
    SELECT e.*
      FROM onthedot.queues AS q
     CROSS JOIN (VALUES (0::int2), (1::int2), (2::int2), (3::int2)) AS l (priority)
     CROSS JOIN (VALUES (false), (true)) AS k (limited)
     CROSS JOIN LATERAL (
           SELECT shard, execution_id, job_id, task_id, queue, due_at, attempt_number
             FROM onthedot.executions AS e
            WHERE e.queue = q.queue AND e.priority = l.priority AND e.limited = k.limited AND e.status IN ('PENDING', 'RETRYING') AND NOT e.held
              AND e.worker_deaths < 2 AND e.due_at > now()
            ORDER BY e.due_at
            LIMIT $1::int4) AS e
     ORDER BY e.due_at
     LIMIT $1::int4
)
SELECT n.execution_id, n.job_id, j.job_id IS NOT NULL AS job_exists, j.name AS job_name, n.task_id, n.queue, n.due_at, n.attempt_number
  FROM next AS n
  LEFT JOIN onthedot.jobs AS j ON j.shard = n.shard AND j.job_id = n.job_id
 ORDER BY n.due_at
