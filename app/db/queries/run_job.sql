-- run_job: create an execution of a job apart from its schedule.
-- $1 shard (int2), $2 job_id (uuid), $3 execution_id (uuid), $4 scheduled_time (timestamptz), $5 trigger (text),
-- $6 run_key (text; '' for the schedule's own instant)
-- index: primary key of jobs
INSERT INTO onthedot.executions
       (shard, execution_id, job_id, user_id, task_id, queue, priority, status, trigger, run_key, scheduled_time,
        due_at, first_due_at, parameters, parameters_checked, timeout_seconds, max_attempts, batch_id,
        expires_at, limited, concurrency_key,
        concurrency_limit, overlap)
SELECT j.shard, $3::uuid, j.job_id, j.user_id, j.task_id, q.queue, coalesce(j.priority, t.priority), 'PENDING',
       $5::text, $6::text, $4::timestamptz, greatest($4::timestamptz, now()), greatest($4::timestamptz, now()),
       j.parameters, j.parameters_checked, j.timeout_seconds,
       1 + coalesce(j.max_retries, t.max_retries, q.max_retries), j.batch_id,
       onthedot.start_deadline(greatest($4::timestamptz, now()), j.expires_after_seconds),
       t.limited OR coalesce(u.limited, false) OR q.limited OR j.concurrency_key IS NOT NULL OR j.overlap <> 'allow',
       CASE WHEN coalesce(j.concurrency_key, t.concurrency_key) IS NOT NULL
            THEN onthedot.render_key(coalesce(j.concurrency_key, t.concurrency_key), j.parameters) END,
       coalesce(j.concurrency_limit, t.concurrency_limit), j.overlap
  FROM onthedot.jobs AS j
  JOIN onthedot.tasks AS t ON t.task_id = j.task_id
  JOIN onthedot.queues AS q ON q.queue = coalesce(j.queue, t.queue)
  LEFT JOIN onthedot.users AS u ON u.user_id = j.user_id
 WHERE j.shard = $1 AND j.job_id = $2
    ON CONFLICT (job_id, scheduled_time, run_key, shard) DO NOTHING  -- the schedule's instant has begun already
RETURNING queue, priority, due_at, limited
