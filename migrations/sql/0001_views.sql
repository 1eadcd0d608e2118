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
               claimed_at, started_at, NULL::timestamptz AS completed_at, lateness_ms,
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
