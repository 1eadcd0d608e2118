-- replan_task: bring waiting executions of a task to what it says now, in the transaction that changes it.
-- $1 task_id (text)
-- No index: a look at every live row, for a change that is rare. Executions carry copies of what the claim decides
-- by; what a job overrides stays. Leased rows are left alone: they begin within the look-ahead.
-- So are steps of workflows: their job is the workflow, whose settings are not theirs.
UPDATE onthedot.executions AS e
   SET queue = q.queue, priority = coalesce(j.priority, t.priority),
       max_attempts = greatest(e.attempt_number, 1 + coalesce(j.max_retries, t.max_retries, q.max_retries)),
       limited = t.limited OR coalesce(u.limited, false) OR q.limited OR j.concurrency_key IS NOT NULL OR j.overlap <> 'allow',
       concurrency_key = CASE WHEN coalesce(j.concurrency_key, t.concurrency_key) IS NOT NULL
                              THEN onthedot.render_key(coalesce(j.concurrency_key, t.concurrency_key), e.parameters) END,
       concurrency_limit = coalesce(j.concurrency_limit, t.concurrency_limit)
  FROM onthedot.jobs AS j
  JOIN onthedot.tasks AS t ON t.task_id = j.task_id
  JOIN onthedot.queues AS q ON q.queue = coalesce(j.queue, t.queue)
  LEFT JOIN onthedot.users AS u ON u.user_id = j.user_id
 WHERE e.task_id = $1 AND j.shard = e.shard AND j.job_id = e.job_id AND e.status IN ('BLOCKED', 'PENDING', 'RETRYING')
   AND e.trigger <> 'workflow'
