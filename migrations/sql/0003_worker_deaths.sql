-- Executions that were running when their worker process ended: counted apart from those that failed, and from the second
-- time on run alone in a process, so that neither they nor their neighbours are condemned for what another one did.

ALTER TABLE onthedot.executions
    ADD COLUMN worker_deaths smallint NOT NULL DEFAULT 0 CHECK (worker_deaths >= 0);
---
COMMENT ON COLUMN onthedot.executions.worker_deaths IS
    'How often its worker process ended, hung or was cut off while it ran; each adds one to max_attempts. From 2 on it runs alone in a process, and the 4th fails it as poison';
---
ALTER TABLE onthedot.execution_history
    ADD COLUMN worker_deaths smallint NOT NULL DEFAULT 0;
---
COMMENT ON COLUMN onthedot.execution_history.worker_deaths IS
    'How often its worker process ended, hung or was cut off while it ran; each added one to max_attempts';
---
COMMENT ON COLUMN onthedot.executions.max_attempts IS
    'Attempts it may have in all: those that its retries allow, and one more for each that it was not to blame for (worker_deaths, and being told to come back later)';
---
COMMENT ON COLUMN onthedot.execution_history.max_attempts IS
    'Attempts it might have had, worker_deaths among them';
---
-- Ordinary claims pass suspects by; whoever reads by this index says so, too.
DROP INDEX onthedot.executions_ready;
---
CREATE INDEX executions_ready ON onthedot.executions (queue, priority, due_at)
    WHERE status IN ('PENDING', 'RETRYING') AND NOT held AND worker_deaths < 2;
---
-- Holds next to nothing, whatever their status: a look at it each second by each worker costs no more than a look.
CREATE INDEX executions_suspects ON onthedot.executions (due_at) WHERE worker_deaths >= 2;
---
CREATE OR REPLACE VIEW audit.executions AS
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
       e.retried_from, e.lease_epoch, e.shard, e.worker_deaths
  FROM (SELECT shard, execution_id, job_id, user_id, task_id, queue, priority, status,
               'pending' AS disposition, trigger, retried_from, scheduled_time, first_due_at, due_at,
               parameters, max_attempts, attempt_number, lease_epoch, worker_id, lease_expires_at,
               claimed_at, coalesce(started_at, CASE WHEN status = 'RUNNING' THEN claimed_at END) AS started_at,
               NULL::timestamptz AS completed_at, lateness_ms,
               NULL::jsonb AS result, false AS result_truncated, error, worker_deaths
          FROM onthedot.executions
        UNION ALL
        SELECT shard, execution_id, job_id, user_id, task_id, queue, priority, status,
               disposition, trigger, retried_from, scheduled_time, first_due_at, due_at,
               parameters, max_attempts, attempt_number, lease_epoch, worker_id, NULL::timestamptz,
               claimed_at, started_at, completed_at, lateness_ms,
               result, result_truncated, error, worker_deaths
          FROM onthedot.execution_history) e
  LEFT JOIN onthedot.jobs j ON j.shard = e.shard AND j.job_id = e.job_id
  LEFT JOIN onthedot.workers w ON w.worker_id = e.worker_id;
---
COMMENT ON COLUMN audit.executions.worker_deaths IS
    'How often its worker process ended, hung or was cut off while it ran';
---
-- By priority, so that each look is a short range of executions_ready: what falls due later is not read.
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
  FROM onthedot.queues AS q
 CROSS JOIN (VALUES (0::smallint), (1::smallint), (2::smallint), (3::smallint)) AS p (priority)
  JOIN onthedot.executions AS e ON e.queue = q.queue AND e.priority = p.priority
 WHERE (q.paused_at IS NULL OR q.paused_until <= now()) AND e.status IN ('PENDING', 'RETRYING') AND NOT e.held
   AND e.worker_deaths < 2 AND e.due_at < now() - interval '60 s'
UNION ALL
SELECT e.execution_id, e.job_id, e.task_id, e.user_id, e.queue, e.priority, e.status, e.due_at,
       'not_claimed', e.due_at, e.attempt_number, e.max_attempts, NULL, NULL, e.shard
  FROM onthedot.executions AS e
  JOIN onthedot.queues AS q ON q.queue = e.queue
 WHERE (q.paused_at IS NULL OR q.paused_until <= now()) AND e.status IN ('PENDING', 'RETRYING') AND NOT e.held
   AND e.worker_deaths >= 2 AND e.due_at < now() - interval '60 s';
---
CREATE OR REPLACE VIEW audit.queue_depth AS
SELECT q.queue, d.depth, d.oldest_due_at,
       extract(epoch FROM now() - d.oldest_due_at)::float8 AS oldest_due_seconds,
       d.due_within_minute, coalesce(l.scheduled, 0) AS scheduled, coalesce(l.running, 0) AS running,
       coalesce(q.max_delay_ms, 2000) AS max_delay_ms, q.paused_at, q.paused_by, q.paused_reason, q.paused_until
  FROM onthedot.queues AS q
 CROSS JOIN LATERAL (
       SELECT count(*) FILTER (WHERE e.due_at <= now()) AS depth,
              count(*) FILTER (WHERE e.due_at > now()) AS due_within_minute,
              min(e.due_at) FILTER (WHERE e.due_at <= now()) AS oldest_due_at
         FROM (SELECT o.due_at
                 FROM (VALUES (0::smallint), (1::smallint), (2::smallint), (3::smallint)) AS p (priority)
                 JOIN onthedot.executions AS o
                   ON o.queue = q.queue AND o.priority = p.priority AND o.status IN ('PENDING', 'RETRYING')
                      AND NOT o.held AND o.worker_deaths < 2 AND o.due_at <= now() + interval '1 minute'
               UNION ALL
               SELECT s.due_at
                 FROM onthedot.executions AS s
                WHERE s.queue = q.queue AND s.status IN ('PENDING', 'RETRYING') AND NOT s.held
                  AND s.worker_deaths >= 2 AND s.due_at <= now() + interval '1 minute') AS e) AS d
  LEFT JOIN (SELECT queue, count(*) FILTER (WHERE status = 'SCHEDULED') AS scheduled,
                    count(*) FILTER (WHERE status = 'RUNNING') AS running
               FROM onthedot.executions
              WHERE status IN ('SCHEDULED', 'RUNNING')
              GROUP BY queue) AS l ON l.queue = q.queue;
---
SELECT onthedot.ensure_roles();
