-- late_waiting: executions that wait and should have begun by the promise of their queue, the longest overdue first. What waits in
-- a queue that is paused is not late.
-- $1 most to count (int4), $2 how many to return (int4), and one element an execution: $3 shards (int2[]) and $4 ids (uuid[])
-- of those that come under limits and are late nevertheless (late_limited.sql)
-- index: executions_ready (queue, priority, limited, due_at), the head of each queue and priority; executions_suspects
WITH promised AS MATERIALIZED (
    SELECT queue, now() - make_interval(secs => coalesce(max_delay_ms, 2000) / 1000.0) AS due_before
      FROM onthedot.queues
     WHERE paused_at IS NULL OR paused_until <= now()
), late AS MATERIALIZED (
    SELECT e.*
      FROM promised AS q
     CROSS JOIN (VALUES (0::int2), (1::int2), (2::int2), (3::int2)) AS l (priority)
     CROSS JOIN LATERAL (
           SELECT shard, execution_id, job_id, task_id, queue, due_at
             FROM onthedot.executions AS e
            WHERE e.queue = q.queue AND e.priority = l.priority AND NOT e.limited AND e.status IN ('PENDING', 'RETRYING')
              AND NOT e.held AND e.worker_deaths < 2 AND e.due_at < q.due_before
            ORDER BY e.due_at
            LIMIT $1::int4) AS e
    UNION ALL
    SELECT e.shard, e.execution_id, e.job_id, e.task_id, e.queue, e.due_at
      FROM onthedot.executions AS e JOIN promised AS q ON q.queue = e.queue
     WHERE e.status IN ('PENDING', 'RETRYING') AND NOT e.held AND e.worker_deaths >= 2 AND NOT e.limited
       AND e.due_at < q.due_before
    UNION ALL
    SELECT e.shard, e.execution_id, e.job_id, e.task_id, e.queue, e.due_at
      FROM unnest($3::int2[], $4::uuid[]) AS x (shard, execution_id)
      JOIN onthedot.executions AS e ON e.shard = x.shard AND e.execution_id = x.execution_id
     ORDER BY due_at
     LIMIT $1::int4
), shown AS MATERIALIZED (
    SELECT * FROM late ORDER BY due_at LIMIT $2::int4
)
SELECT s.execution_id, s.job_id, j.job_id IS NOT NULL AS job_exists, j.name AS job_name, s.task_id, s.queue, s.due_at,
       (SELECT count(*)::int4 FROM late) AS total
  FROM shown AS s
  LEFT JOIN onthedot.jobs AS j ON j.shard = s.shard AND j.job_id = s.job_id
 ORDER BY s.due_at
