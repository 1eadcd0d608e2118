-- explain_limits: what limits one live execution, as the claim sees it (candidates_*.sql), and what its task requires.
-- $1 shard (int2), $2 execution_id (uuid)
-- index: primary keys
SELECT c.execution_id, c.job_id, c.user_id, c.task_id, c.due_at, c.trigger, c.attempt_number, c.overlap, c.limited,
       c.concurrency_key, c.concurrency_limit,
       u.max_concurrent_jobs, u.rate_per_second AS user_rate, u.rate_burst AS user_burst,
       t.concurrency, t.rate_per_second AS task_rate, t.rate_burst AS task_burst, t.cpu_cores, t.memory_mb,
       q.max_concurrency, q.rate_per_second AS queue_rate, q.rate_burst AS queue_burst,
       c.queue, coalesce(t.labels, '{}') AS labels
  FROM onthedot.executions AS c
  LEFT JOIN onthedot.users AS u ON u.user_id = c.user_id
  LEFT JOIN onthedot.tasks AS t ON t.task_id = c.task_id
  LEFT JOIN onthedot.queues AS q ON q.queue = c.queue
 WHERE c.shard = $1 AND c.execution_id = $2
