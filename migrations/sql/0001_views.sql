-- Views for people. One execution's whole story: SELECT * FROM audit.executions WHERE execution_id = '…';

CREATE VIEW audit.executions AS
SELECT e.execution_id, e.job_id, j.name AS job_name, e.task_id, e.user_id, e.queue, e.priority,
       e.status, e.disposition, e.trigger, e.scheduled_time, e.first_due_at, e.due_at, e.claimed_at,
       e.started_at, e.completed_at, e.lateness_ms, e.attempt_number, e.max_attempts, e.worker_id,
       w.host AS worker_host, e.lease_expires_at, e.parameters, e.result, e.result_truncated,
       e.error ->> 'type' AS error_type, e.error ->> 'message' AS error_details, e.error,
       (SELECT jsonb_agg(jsonb_build_object('attempt_number', a.attempt_number, 'worker_id', a.worker_id,
                         'started_at', a.started_at, 'ended_at', a.ended_at, 'outcome', a.outcome,
                         'error', a.error ->> 'message') ORDER BY a.attempt_number, a.lease_epoch)
          FROM onthedot.attempts a WHERE a.execution_id = e.execution_id) AS earlier_attempts,
       (SELECT string_agg(format('#%s %s %s', l.attempt_number, l.level, l.message), E'\n'
                          ORDER BY l.attempt_number, l.sequence)
          FROM onthedot.execution_logs l WHERE l.execution_id = e.execution_id) AS log,
       e.retried_from, e.lease_epoch, e.shard
  FROM (SELECT shard, execution_id, job_id, user_id, task_id, queue, priority, status,
               'pending' AS disposition, trigger, retried_from, scheduled_time, first_due_at, due_at,
               parameters, max_attempts, attempt_number, lease_epoch, worker_id, lease_expires_at,
               claimed_at, coalesce(started_at, CASE WHEN status = 'RUNNING' THEN claimed_at END) AS started_at,
               NULL::timestamptz AS completed_at, lateness_ms,
               NULL::jsonb AS result, false AS result_truncated, error
          FROM onthedot.executions
        UNION ALL
        SELECT shard, execution_id, job_id, user_id, task_id, queue, priority, status,
               disposition, trigger, retried_from, scheduled_time, first_due_at, due_at,
               parameters, max_attempts, attempt_number, lease_epoch, worker_id, NULL::timestamptz,
               claimed_at, started_at, completed_at, lateness_ms,
               result, result_truncated, error
          FROM onthedot.execution_history) e
  LEFT JOIN onthedot.jobs j ON j.shard = e.shard AND j.job_id = e.job_id
  LEFT JOIN onthedot.workers w ON w.worker_id = e.worker_id;
---
COMMENT ON VIEW audit.executions IS
    'Every execution, live and finished, with its earlier attempts and its log: one row tells the whole story';
---
CREATE VIEW audit.jobs AS
SELECT j.job_id, j.name, j.user_id, j.task_id, t.name AS task_name, j.schedule_type, j.expression, j.scheduled_time,
       j.every_seconds, j.timezone, j.starts_at, j.ends_at, j.is_active, j.pause_reason, j.paused_until,
       (SELECT min(e.scheduled_time)
          FROM onthedot.executions AS e
         WHERE e.shard = j.shard AND e.job_id = j.job_id AND e.status IN ('BLOCKED', 'PENDING', 'SCHEDULED'))
           AS next_time,
       coalesce(j.queue, t.queue) AS queue, coalesce(j.priority, t.priority) AS priority,
       coalesce(j.max_retries, t.max_retries, q.max_retries) AS max_retries,
       coalesce(j.timeout_seconds, t.timeout_seconds) AS timeout_seconds, j.overlap, j.misfire, j.parameters, j.tags,
       j.batch_id, j.created_at, j.updated_at, j.version, j.shard
  FROM onthedot.jobs AS j
  LEFT JOIN onthedot.tasks AS t ON t.task_id = j.task_id
  LEFT JOIN onthedot.queues AS q ON q.queue = coalesce(j.queue, t.queue);
---
COMMENT ON VIEW audit.jobs IS 'Jobs, with what holds for them where they leave it to their task or queue';
---
-- The attempt that ended an execution stands in the history, one that runs on the live row. A cancelled row shows no
-- attempt of its own where it only waited for the next one: then the last one stands among the earlier ones.
-- A start that was not written down yet counts from the claim. The API reads attempts here too.
CREATE VIEW audit.attempts AS
SELECT a.execution_id, a.attempt_number, a.outcome, a.started_at, a.ended_at, a.worker_id, w.host AS worker_host,
       a.error ->> 'type' AS error_type, a.error ->> 'message' AS error_details, a.error, a.job_id, a.task_id,
       a.user_id, a.lease_epoch, a.shard
  FROM (SELECT x.shard, x.execution_id, e.job_id, e.task_id, e.user_id, x.attempt_number, x.lease_epoch,
               x.worker_id, x.started_at, x.ended_at, x.outcome, x.error
          FROM onthedot.attempts AS x
          LEFT JOIN (SELECT shard, execution_id, job_id, task_id, user_id FROM onthedot.executions
                     UNION ALL
                     SELECT shard, execution_id, job_id, task_id, user_id FROM onthedot.execution_history) AS e
            ON e.shard = x.shard AND e.execution_id = x.execution_id
        UNION ALL
        SELECT shard, execution_id, job_id, task_id, user_id, attempt_number, lease_epoch, worker_id, started_at,
               completed_at,
               CASE WHEN status <> 'FAILED' THEN lower(status)
                    WHEN error ->> 'type' = 'LeaseLapsed' THEN 'lost'
                    WHEN error ->> 'category' = 'timeout' THEN 'timeout'
                    ELSE 'failed' END, error
          FROM onthedot.execution_history AS h
         WHERE attempt_number >= 1
           AND (status IN ('COMPLETED', 'FAILED')
                OR status = 'CANCELLED' AND worker_id IS NOT NULL
                   AND (started_at IS NOT NULL
                        OR NOT EXISTS (SELECT FROM onthedot.attempts AS x
                                        WHERE x.shard = h.shard AND x.execution_id = h.execution_id
                                          AND x.attempt_number = h.attempt_number)))
        UNION ALL
        SELECT shard, execution_id, job_id, task_id, user_id, attempt_number, lease_epoch, worker_id,
               coalesce(started_at, claimed_at), NULL, 'running', NULL
          FROM onthedot.executions
         WHERE status = 'RUNNING') AS a
  LEFT JOIN onthedot.workers AS w ON w.worker_id = a.worker_id;
---
COMMENT ON VIEW audit.attempts IS
    'Every attempt: those that failed and were retried or were lost, the one that ended an execution, those that run';
---
CREATE VIEW audit.late_executions AS
SELECT e.execution_id, e.job_id, e.task_id, e.user_id, e.queue, e.priority, e.status, e.scheduled_time,
       e.first_due_at, e.first_due_at + make_interval(secs => e.lateness_ms / 1000) AS first_started_at,
       e.lateness_ms, coalesce(q.max_delay_ms, 2000) AS max_delay_ms, e.attempt_number, e.completed_at, e.shard
  FROM (SELECT shard, execution_id, job_id, task_id, user_id, queue, priority, status, scheduled_time, first_due_at,
               coalesce(lateness_ms,
                        1000 * extract(epoch FROM coalesce(started_at, claimed_at) - first_due_at)::float8)
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
    'Executions that started later than their queue''s max_delay_ms says; ask for a span of scheduled_time';
---
-- By priority, so that each look is a short range of executions_ready: what falls due later is not read.
CREATE VIEW audit.stuck_executions AS
SELECT e.execution_id, e.job_id, e.task_id, e.user_id, e.queue, e.priority, e.status, e.due_at,
       'lease_lapsed' AS problem, e.lease_expires_at AS since, e.attempt_number, e.max_attempts, e.worker_id,
       w.host AS worker_host, e.shard
  FROM onthedot.executions AS e
  LEFT JOIN onthedot.workers AS w ON w.worker_id = e.worker_id
 WHERE e.status IN ('SCHEDULED', 'RUNNING') AND e.lease_expires_at < now() - interval '10 s'
UNION ALL
SELECT e.execution_id, e.job_id, e.task_id, e.user_id, e.queue, e.priority, e.status, e.due_at,
       'not_claimed', e.due_at, e.attempt_number, e.max_attempts, NULL, NULL, e.shard
  FROM onthedot.queues AS q
 CROSS JOIN (VALUES (0::smallint), (1::smallint), (2::smallint), (3::smallint)) AS p (priority)
  JOIN onthedot.executions AS e ON e.queue = q.queue AND e.priority = p.priority
 WHERE (q.paused_at IS NULL OR q.paused_until <= now()) AND e.status IN ('PENDING', 'RETRYING') AND NOT e.held
   AND e.due_at < now() - interval '60 s';
---
COMMENT ON VIEW audit.stuck_executions IS
    'Executions whose lease ran out 10 seconds ago and nobody noticed, or that have been due for a minute and nobody '
    'claimed them, though neither their job nor their queue is paused';
---
CREATE VIEW audit.queue_depth AS
SELECT q.queue, d.depth, d.oldest_due_at,
       extract(epoch FROM now() - d.oldest_due_at)::float8 AS oldest_due_seconds,
       d.due_within_minute, coalesce(l.scheduled, 0) AS scheduled, coalesce(l.running, 0) AS running,
       coalesce(q.max_delay_ms, 2000) AS max_delay_ms, q.paused_at, q.paused_by, q.paused_reason, q.paused_until
  FROM onthedot.queues AS q
 CROSS JOIN LATERAL (
       SELECT count(*) FILTER (WHERE e.due_at <= now()) AS depth,
              count(*) FILTER (WHERE e.due_at > now()) AS due_within_minute,
              min(e.due_at) FILTER (WHERE e.due_at <= now()) AS oldest_due_at
         FROM (VALUES (0::smallint), (1::smallint), (2::smallint), (3::smallint)) AS p (priority)
         JOIN onthedot.executions AS e
           ON e.queue = q.queue AND e.priority = p.priority AND e.status IN ('PENDING', 'RETRYING') AND NOT e.held
              AND e.due_at <= now() + interval '1 minute') AS d
  LEFT JOIN (SELECT queue, count(*) FILTER (WHERE status = 'SCHEDULED') AS scheduled,
                    count(*) FILTER (WHERE status = 'RUNNING') AS running
               FROM onthedot.executions
              WHERE status IN ('SCHEDULED', 'RUNNING')
              GROUP BY queue) AS l ON l.queue = q.queue;
---
COMMENT ON VIEW audit.queue_depth IS 'What waits and what runs in each queue at this moment';
---
CREATE VIEW audit.workers AS
SELECT w.worker_id, w.host, w.pid, w.version,
       CASE WHEN w.stopped_at IS NOT NULL THEN 'stopped'
            WHEN w.heartbeat_at < now() - interval '60 s' THEN 'lost'
            WHEN w.heartbeat_at < now() - interval '15 s' THEN 'stale'
            WHEN w.draining THEN 'draining'
            ELSE 'live' END AS state,
       w.queues, w.labels, w.slots, w.running, coalesce(l.leases, 0) AS leases, l.first_lease_expires_at,
       w.started_at, w.heartbeat_at, w.stopped_at
  FROM onthedot.workers AS w
  LEFT JOIN (SELECT worker_id, count(*) AS leases, min(lease_expires_at) AS first_lease_expires_at
               FROM onthedot.executions
              WHERE status IN ('SCHEDULED', 'RUNNING')
              GROUP BY worker_id) AS l ON l.worker_id = w.worker_id;
---
COMMENT ON VIEW audit.workers IS 'Worker processes, how they are, and what they hold';
---
CREATE VIEW audit.occurrences AS
SELECT job_id, first_time, last_time, occurrences, disposition, NULL::uuid AS execution_id, cause, shard
  FROM onthedot.ledger_ranges
UNION ALL
SELECT job_id, scheduled_time, scheduled_time, 1, 'pending', execution_id, lower(status), shard
  FROM onthedot.executions
 WHERE run_key = ''
UNION ALL
SELECT job_id, scheduled_time, scheduled_time, 1, disposition, execution_id, error ->> 'message', shard
  FROM onthedot.execution_history
 WHERE run_key = '';
---
COMMENT ON VIEW audit.occurrences IS
    'What became of every instant of a job''s schedule: a range of instants passed over for one cause, or one execution';
---
CREATE VIEW audit.changes AS
SELECT audit_id, at, actor, action, target_type, target_id, before, after, reason, request_id, client, session_role
  FROM onthedot.audit_log;
---
COMMENT ON VIEW audit.changes IS
    'Who changed what and when: WHERE target_type = ''job'' AND target_id = ''…'' ORDER BY audit_id tells one job''s story';
