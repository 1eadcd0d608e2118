-- materialize: create the executions of occurrences of jobs of one shard.
-- $1 shard (int2), and one element an occurrence: $2 job_ids (uuid[]), $3 execution_ids (uuid[]),
-- $4 scheduled_time (timestamptz[])
-- What the claim decides by is copied onto the row. ON CONFLICT: an occurrence that stands already stays as it is.
INSERT INTO onthedot.executions
       (shard, execution_id, job_id, user_id, task_id, queue, priority, status, scheduled_time, due_at,
        first_due_at, parameters, parameters_checked, timeout_seconds, max_attempts, expires_at, limited, concurrency_key,
        concurrency_limit, overlap)
SELECT j.shard, o.execution_id, j.job_id, j.user_id, j.task_id, q.queue, coalesce(j.priority, t.priority),
       CASE WHEN j.depends_on = '{}' THEN 'PENDING' ELSE 'BLOCKED' END, o.scheduled_time, greatest(o.scheduled_time, now()), o.scheduled_time, j.parameters,
       j.parameters_checked, j.timeout_seconds,
       1 + coalesce(j.max_retries, t.max_retries, q.max_retries),
       onthedot.start_deadline(o.scheduled_time, j.expires_after_seconds),
       t.limited OR coalesce(u.limited, false) OR q.limited OR j.concurrency_key IS NOT NULL OR j.overlap <> 'allow',
       CASE WHEN coalesce(j.concurrency_key, t.concurrency_key) IS NOT NULL
            THEN onthedot.render_key(coalesce(j.concurrency_key, t.concurrency_key), j.parameters) END,
       coalesce(j.concurrency_limit, t.concurrency_limit), j.overlap
  FROM unnest($2::uuid[], $3::uuid[], $4::timestamptz[]) AS o (job_id, execution_id, scheduled_time)
  JOIN onthedot.jobs AS j ON j.shard = $1 AND j.job_id = o.job_id
  JOIN onthedot.tasks AS t ON t.task_id = j.task_id
  JOIN onthedot.queues AS q ON q.queue = coalesce(j.queue, t.queue)
  LEFT JOIN onthedot.users AS u ON u.user_id = j.user_id
    ON CONFLICT DO NOTHING
RETURNING queue, priority, due_at, limited
