-- What it waits for a limit is no lateness; it is told apart when an attempt ends. Until then nobody here knows of it.
CREATE OR REPLACE VIEW audit.late_executions AS
SELECT e.execution_id, e.job_id, e.task_id, e.user_id, e.queue, e.priority, e.status, e.scheduled_time,
       e.first_due_at, e.first_due_at + make_interval(secs => e.lateness_ms / 1000) AS first_started_at,
       e.lateness_ms, coalesce(q.max_delay_ms, 2000) AS max_delay_ms, e.attempt_number, e.completed_at, e.shard
  FROM (SELECT shard, execution_id, job_id, task_id, user_id, queue, priority, status, scheduled_time, first_due_at,
               coalesce(lateness_ms,
                        CASE WHEN NOT limited
                             THEN 1000 * extract(epoch FROM coalesce(started_at, claimed_at) - first_due_at)::float8 END)
                   AS lateness_ms,
               attempt_number, NULL::timestamptz AS completed_at
          FROM onthedot.executions
         WHERE attempt_number >= 1 AND scheduled_time < now() + interval '1 minute'  -- a million lie beyond
        UNION ALL
        SELECT shard, execution_id, job_id, task_id, user_id, queue, priority, status, scheduled_time, first_due_at,
               lateness_ms, attempt_number, completed_at
          FROM onthedot.execution_history) AS e
  LEFT JOIN onthedot.queues AS q ON q.queue = e.queue
 WHERE e.lateness_ms > coalesce(q.max_delay_ms, 2000);
---
COMMENT ON VIEW audit.late_executions IS
    'Executions that started later than their queue''s max_delay_ms says; ask for a span of scheduled_time. What they waited '
    'for limits does not count, so those that come under limits are here once an attempt has ended';
---
-- By priority, so that each look is a short range of executions_ready: what falls due later is not read. What limits an
-- execution is looked up for those that have waited for so long.
CREATE OR REPLACE VIEW audit.stuck_executions AS
SELECT e.execution_id, e.job_id, e.task_id, e.user_id, e.queue, e.priority, e.status, e.due_at,
       'lease_lapsed' AS problem, e.lease_expires_at AS since, e.attempt_number, e.max_attempts, e.worker_id,
       w.host AS worker_host, e.shard
  FROM onthedot.executions AS e
  LEFT JOIN onthedot.workers AS w ON w.worker_id = e.worker_id
 WHERE e.status IN ('SCHEDULED', 'RUNNING') AND e.lease_expires_at < now() - interval '10 s'
UNION ALL
SELECT e.execution_id, e.job_id, e.task_id, e.user_id, e.queue, e.priority, e.status, e.due_at,
       'not_claimed', e.due_at, e.attempt_number, e.max_attempts, NULL, NULL, e.shard
  FROM (SELECT w.*, q.max_concurrency, q.rate_per_second
          FROM onthedot.queues AS q
         CROSS JOIN (VALUES (0::smallint), (1::smallint), (2::smallint), (3::smallint)) AS p (priority)
          JOIN onthedot.executions AS w ON w.queue = q.queue AND w.priority = p.priority
         WHERE (q.paused_at IS NULL OR q.paused_until <= now()) AND w.status IN ('PENDING', 'RETRYING') AND NOT w.held
           AND w.worker_deaths < 2 AND w.due_at < now() - interval '60 s'
        UNION ALL
        SELECT w.*, q.max_concurrency, q.rate_per_second
          FROM onthedot.executions AS w
          JOIN onthedot.queues AS q ON q.queue = w.queue
         WHERE (q.paused_at IS NULL OR q.paused_until <= now()) AND w.status IN ('PENDING', 'RETRYING') AND NOT w.held
           AND w.worker_deaths >= 2 AND w.due_at < now() - interval '60 s') AS e
  LEFT JOIN onthedot.users AS u ON u.user_id = e.user_id
  LEFT JOIN onthedot.tasks AS t ON t.task_id = e.task_id
 WHERE NOT (e.limited AND EXISTS (
       SELECT FROM (VALUES ('user:' || e.user_id, u.max_concurrent_jobs, u.rate_per_second),
                           ('queue:' || e.queue, e.max_concurrency, e.rate_per_second),
                           ('task:' || e.task_id, t.concurrency, t.rate_per_second),
                           ('key:' || e.concurrency_key, coalesce(e.concurrency_limit, 1), t.rate_per_second),
                           ('job:' || e.job_id, CASE WHEN e.overlap <> 'allow' THEN 1 END, NULL)) AS l (key, most, per_second)
        WHERE l.most <= (SELECT count(*) FROM onthedot.limit_holders AS h
                          WHERE h.key = l.key AND h.execution_id <> e.execution_id)
           OR EXISTS (SELECT FROM onthedot.rate_buckets AS b
                       WHERE b.key = l.key AND b.refilled_at > now() - make_interval(secs => 60 + 1 / l.per_second))));
---
COMMENT ON VIEW audit.stuck_executions IS
    'Executions whose lease ran out 10 seconds ago and nobody noticed, or that have been due for a minute and nobody '
    'claimed them, though neither their job nor their queue is paused, and no limit that is full or a rate that is in use '
    'keeps them waiting';
