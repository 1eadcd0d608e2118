-- execution_setting: what stands around one execution: its deadlines, its job, its queue's promise, its worker.
-- $1 shard (int2), $2 execution_id (uuid)
-- index: primary keys. While a row moves to the history it may be seen in neither half: the caller asks again.
SELECT e.first_due_at, e.timeout_seconds, e.batch_id, e.held, e.cancel_requested_at, e.run_key,
       coalesce(q.max_delay_ms, 2000) AS max_delay_ms, q.queue IS NOT NULL AS has_queue,
       j.job_id IS NOT NULL AS has_job, t.task_id IS NOT NULL AS has_task
  FROM (SELECT shard, job_id, task_id, queue, first_due_at, timeout_seconds, batch_id, held, cancel_requested_at, run_key
          FROM onthedot.executions
         WHERE shard = $1 AND execution_id = $2
        UNION ALL
        SELECT shard, job_id, task_id, queue, first_due_at, timeout_seconds, batch_id, false, NULL, run_key
          FROM onthedot.execution_history
         WHERE shard = $1 AND execution_id = $2) AS e
  LEFT JOIN onthedot.queues AS q ON q.queue = e.queue
  LEFT JOIN onthedot.jobs AS j ON j.shard = e.shard AND j.job_id = e.job_id
  LEFT JOIN onthedot.tasks AS t ON t.task_id = e.task_id
 LIMIT 1
