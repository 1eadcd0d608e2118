-- replan_waiting: bring the executions of a job that nobody has begun to what the job says now.
-- $1 shard (int2), $2 job_id (uuid), $3 scheduled_time (timestamptz; null: stays), $4 held (bool), $5 now (timestamptz),
-- $6 the start deadline is set anew (bool): it moves with the instant and with what the job says, not by a pause
-- Steps of a workflow's runs stay as they are: what a change of it says holds for the runs to come.
-- index: executions_one_per_instant (job_id, …). lease_epoch + 1: a worker that leased it ahead cannot arm it any more.
-- due_at never moves to before now: the claim's low-water mark may have passed it. Lateness counts from the new
-- instant, and not through the time in which the job was paused.
-- Locked in the order of their ids, as whoever ends several locks them: a row that has begun meanwhile is locked, too,
-- before it turns out to be none of these. What other jobs have let begin is looked at anew: it may depend on others now. = ANY (ARRAY(…)): as in claim_due.sql
WITH waiting AS MATERIALIZED (
    SELECT execution_id
      FROM onthedot.executions
     WHERE shard = $1 AND job_id = $2 AND trigger <> 'workflow' AND status IN ('BLOCKED', 'PENDING', 'SCHEDULED')
       AND attempt_number = 0
     ORDER BY execution_id
       FOR UPDATE
)
UPDATE onthedot.executions AS e
   SET status = CASE WHEN j.depends_on = '{}' OR e.trigger <> 'schedule' THEN 'PENDING' ELSE 'BLOCKED' END, held = $4, lease_epoch = e.lease_epoch + 1, worker_id = NULL, lease_expires_at = NULL,
       claimed_at = NULL, scheduled_time = coalesce($3::timestamptz, e.scheduled_time),
       due_at = greatest(coalesce($3::timestamptz, e.due_at), $5::timestamptz),
       first_due_at = CASE WHEN $3::timestamptz IS NULL AND NOT e.held THEN e.first_due_at
                           ELSE greatest(coalesce($3::timestamptz, e.due_at), $5::timestamptz) END,
       expires_at = CASE WHEN $6::bool
                         THEN onthedot.start_deadline(CASE WHEN $3::timestamptz IS NULL THEN e.first_due_at
                                                           ELSE greatest($3::timestamptz, $5::timestamptz) END,
                                                      j.expires_after_seconds)
                         ELSE e.expires_at END,
       queue = q.queue, priority = coalesce(j.priority, t.priority), parameters = j.parameters,
       parameters_checked = j.parameters_checked,
       timeout_seconds = j.timeout_seconds, max_attempts = 1 + coalesce(j.max_retries, t.max_retries, q.max_retries),
       limited = t.limited OR coalesce(u.limited, false) OR q.limited OR j.concurrency_key IS NOT NULL OR j.overlap <> 'allow',
       concurrency_key = CASE WHEN coalesce(j.concurrency_key, t.concurrency_key) IS NOT NULL
                              THEN onthedot.render_key(coalesce(j.concurrency_key, t.concurrency_key), j.parameters) END,
       concurrency_limit = coalesce(j.concurrency_limit, t.concurrency_limit), overlap = j.overlap
  FROM onthedot.jobs AS j
  JOIN onthedot.tasks AS t ON t.task_id = j.task_id
  JOIN onthedot.queues AS q ON q.queue = coalesce(j.queue, t.queue)
  LEFT JOIN onthedot.users AS u ON u.user_id = j.user_id
 WHERE e.shard = $1 AND e.execution_id = ANY (ARRAY(SELECT execution_id FROM waiting)) AND j.shard = $1 AND j.job_id = $2
   AND e.status IN ('BLOCKED', 'PENDING', 'SCHEDULED') AND e.attempt_number = 0
RETURNING e.queue, e.priority, e.due_at, e.limited
