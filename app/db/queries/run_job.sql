-- run_job: create executions of a job apart from its schedule's plan: by hand, for past instants, for a new instant.
-- $1 shard (int2), $2 job_id (uuid), and one element an execution: $3 execution_ids (uuid[]), $4 scheduled_time
-- (timestamptz[]); $5 trigger (text), $6 run_key (text; '' for the schedule's own instants), $7 parameters (text, JSON;
-- null: the job's)
-- index: primary key of jobs. Only what the schedule brings about waits for other jobs.
-- ON CONFLICT: what is there and has not ended stays as it is, and is not returned.
INSERT INTO onthedot.executions
       (shard, execution_id, job_id, user_id, task_id, queue, priority, status, trigger, run_key, scheduled_time,
        due_at, first_due_at, parameters, parameters_checked, timeout_seconds, max_attempts, batch_id,
        expires_at, limited, concurrency_key,
        concurrency_limit, overlap)
SELECT j.shard, x.execution_id, j.job_id, j.user_id, j.task_id, q.queue, coalesce(j.priority, t.priority),
       CASE WHEN j.depends_on = '{}' OR $5::text <> 'schedule' THEN 'PENDING' ELSE 'BLOCKED' END,
       $5::text, $6::text, x.scheduled_time, greatest(x.scheduled_time, now()), greatest(x.scheduled_time, now()),
       p.parameters, j.parameters_checked, j.timeout_seconds,
       1 + coalesce(j.max_retries, t.max_retries, q.max_retries), j.batch_id,
       onthedot.start_deadline(greatest(x.scheduled_time, now()), j.expires_after_seconds),
       t.limited OR coalesce(u.limited, false) OR q.limited OR j.concurrency_key IS NOT NULL OR j.overlap <> 'allow',
       CASE WHEN coalesce(j.concurrency_key, t.concurrency_key) IS NOT NULL
            THEN onthedot.render_key(coalesce(j.concurrency_key, t.concurrency_key), p.parameters) END,
       coalesce(j.concurrency_limit, t.concurrency_limit), j.overlap
  FROM (SELECT unnest($3::uuid[]) AS execution_id, unnest($4::timestamptz[]) AS scheduled_time) AS x
  JOIN onthedot.jobs AS j ON j.shard = $1 AND j.job_id = $2
 CROSS JOIN LATERAL (SELECT coalesce($7::text::jsonb, j.parameters) AS parameters) AS p
  JOIN onthedot.tasks AS t ON t.task_id = j.task_id
  JOIN onthedot.queues AS q ON q.queue = coalesce(j.queue, t.queue)
  LEFT JOIN onthedot.users AS u ON u.user_id = j.user_id
    ON CONFLICT (job_id, scheduled_time, run_key, shard) DO NOTHING
RETURNING execution_id, scheduled_time, queue, priority, due_at, limited
