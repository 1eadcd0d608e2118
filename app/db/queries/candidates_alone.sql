-- candidates_alone: lock due suspects with limits of one shard, queue and priority, the oldest of each lane, and tell what limits
-- them: others of a lane have the same limits. Whoever claims one must run nothing beside it: it has ended, or stopped, two
-- workers or more.
-- $1 shard (int2), $2 queue (text), $3 priority (int2), $4 limit (int4), $5 labels that the worker offers (jsonb),
-- $6 cores of its host (float8), $7 memory of its host in MiB (int4)
-- index: executions_suspects (due_at), which holds next to nothing
WITH first AS MATERIALIZED (
    SELECT DISTINCT ON (user_id, onthedot.lane_of(limited, task_id, concurrency_key, overlap, job_id)) execution_id
      FROM onthedot.executions
     WHERE shard = $1 AND queue = $2 AND priority = $3
       AND status IN ('PENDING', 'RETRYING') AND NOT held AND worker_deaths >= 2 AND cancel_requested_at IS NULL
       AND (expires_at IS NULL OR expires_at > now() OR attempt_number > 0)
       AND limited AND due_at <= now()
       AND NOT EXISTS (SELECT FROM onthedot.queues AS q
                        WHERE q.queue = $2 AND q.paused_at IS NOT NULL
                          AND (q.paused_until IS NULL OR q.paused_until > now()))
     ORDER BY user_id, onthedot.lane_of(limited, task_id, concurrency_key, overlap, job_id), due_at
), due AS MATERIALIZED (
    SELECT *
      FROM onthedot.executions
     WHERE shard = $1 AND execution_id = ANY (ARRAY(SELECT execution_id FROM first))
       AND status IN ('PENDING', 'RETRYING') AND NOT held AND worker_deaths >= 2 AND cancel_requested_at IS NULL AND limited
     ORDER BY due_at
     LIMIT $4
       FOR UPDATE SKIP LOCKED
)
SELECT c.execution_id, c.job_id, c.user_id, c.task_id, c.due_at, c.trigger, c.attempt_number, c.overlap, c.limited,
       c.concurrency_key, c.concurrency_limit,
       u.max_concurrent_jobs, u.rate_per_second AS user_rate, u.rate_burst AS user_burst,
       t.concurrency, t.rate_per_second AS task_rate, t.rate_burst AS task_burst, t.cpu_cores, t.memory_mb,
       q.max_concurrency, q.rate_per_second AS queue_rate, q.rate_burst AS queue_burst
  FROM due AS c
  LEFT JOIN onthedot.users AS u ON u.user_id = c.user_id
  LEFT JOIN onthedot.tasks AS t ON t.task_id = c.task_id
  LEFT JOIN onthedot.queues AS q ON q.queue = $2
 WHERE (t.task_id IS NULL OR (t.labels <@ $5::jsonb AND t.cpu_cores <= $6::float8 AND t.memory_mb <= $7::int4))
 ORDER BY c.due_at
