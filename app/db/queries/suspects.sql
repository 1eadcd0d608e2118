-- suspects: where executions are ready that have ended, or stopped, two workers or more; the most urgent first.
-- $1 queues served (text[]; empty: all), $2 how many (int4), $3 labels that the worker offers (jsonb), $4 cores of its host
-- (float8), $5 memory of its host in MiB (int4)
-- index: executions_suspects (due_at), which holds next to nothing
-- What a full limit keeps waiting, and what fits another worker, is left out: no process is worth keeping for it here. Whether
-- there is room is decided at the claim.
SELECT e.shard, e.queue, e.priority, min(e.due_at) AS due_at, e.limited
  FROM onthedot.executions AS e
  LEFT JOIN onthedot.users AS u ON u.user_id = e.user_id
  LEFT JOIN onthedot.tasks AS t ON t.task_id = e.task_id
  LEFT JOIN onthedot.queues AS q ON q.queue = e.queue
 WHERE e.worker_deaths >= 2 AND e.status IN ('PENDING', 'RETRYING') AND NOT e.held
   AND e.cancel_requested_at IS NULL AND e.due_at <= now()
   AND (cardinality($1::text[]) = 0 OR e.queue = ANY ($1::text[]))
   AND (q.paused_at IS NULL OR q.paused_until <= now())
   AND (t.task_id IS NULL OR (t.labels <@ $3::jsonb AND t.cpu_cores <= $4::float8 AND t.memory_mb <= $5::int4))
   AND NOT (e.limited AND EXISTS (
       SELECT FROM (VALUES ('user:' || e.user_id, u.max_concurrent_jobs), ('queue:' || e.queue, q.max_concurrency),
                           ('task:' || e.task_id, t.concurrency), ('key:' || e.concurrency_key, coalesce(e.concurrency_limit, 1)),
                           ('job:' || e.job_id, CASE WHEN e.overlap <> 'allow' THEN 1 END)) AS l (key, most)
        WHERE l.most <= (SELECT count(*) FROM onthedot.limit_holders AS h
                          WHERE h.key = l.key AND h.execution_id <> e.execution_id)))
 GROUP BY e.shard, e.queue, e.priority, e.limited
 ORDER BY e.priority, due_at
 LIMIT $2
