-- run_again: create a new execution that does again what a finished one did, with its parameters.
-- $1 shard (int2), $2 execution_id of the finished one (uuid), $3 execution_id of the new one (uuid),
-- $4 scheduled_time (timestamptz)
-- index: primary keys of execution_history and jobs. Its job must still exist: it owns what the new one may do.
-- A workflow's step is not run again by itself: those after it would not know (retry_run does).
-- It begins without worker deaths, and without the attempts that these gave; but what was poison is a suspect from the
-- start, else it would take down two workers with all that they run before it is one.
-- FOR KEY SHARE: retention must not delete the job meanwhile. Parameters that are the job's no more are checked anew.
INSERT INTO onthedot.executions
       (shard, execution_id, job_id, user_id, task_id, queue, priority, status, trigger, run_key, retried_from,
        scheduled_time, due_at, first_due_at, parameters, parameters_checked, timeout_seconds, max_attempts, batch_id,
        worker_deaths, expires_at, limited, concurrency_key,
        concurrency_limit, overlap)
SELECT h.shard, $3::uuid, h.job_id, h.user_id, h.task_id, h.queue, h.priority, 'PENDING', 'retry', $3::uuid::text,
       h.execution_id, $4::timestamptz, greatest($4::timestamptz, now()), greatest($4::timestamptz, now()),
       h.parameters, j.parameters_checked AND h.parameters = j.parameters, h.timeout_seconds,
       h.max_attempts - h.worker_deaths + d.worker_deaths, h.batch_id, d.worker_deaths,
       onthedot.start_deadline(greatest($4::timestamptz, now()), j.expires_after_seconds),
       coalesce(t.limited, false) OR coalesce(u.limited, false) OR coalesce(q.limited, false)
       OR j.concurrency_key IS NOT NULL OR j.overlap <> 'allow',
       CASE WHEN coalesce(j.concurrency_key, t.concurrency_key) IS NOT NULL
            THEN onthedot.render_key(coalesce(j.concurrency_key, t.concurrency_key), h.parameters) END,
       coalesce(j.concurrency_limit, t.concurrency_limit), j.overlap
  FROM onthedot.execution_history AS h
 CROSS JOIN LATERAL (SELECT (CASE WHEN h.worker_deaths >= 4 THEN 2 ELSE 0 END)::int2 AS worker_deaths) AS d
  JOIN onthedot.jobs AS j ON j.shard = h.shard AND j.job_id = h.job_id
  LEFT JOIN onthedot.tasks AS t ON t.task_id = h.task_id
  LEFT JOIN onthedot.users AS u ON u.user_id = h.user_id
  LEFT JOIN onthedot.queues AS q ON q.queue = h.queue
 WHERE h.shard = $1 AND h.execution_id = $2 AND h.trigger <> 'workflow'
   FOR KEY SHARE OF j
RETURNING queue, priority, due_at, limited, user_id
