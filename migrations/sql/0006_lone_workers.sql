-- Processes that run what must run alone are workers like others, but no room for what waits in their queues.

ALTER TABLE onthedot.workers ADD COLUMN suspects_only boolean NOT NULL DEFAULT false;
---
COMMENT ON COLUMN onthedot.workers.suspects_only IS
    'True: a process that another worker began for executions that must run alone';
---
CREATE OR REPLACE VIEW audit.workers AS
SELECT w.worker_id, w.host, w.pid, w.version,
       CASE WHEN w.stopped_at IS NOT NULL THEN 'stopped'
            WHEN w.heartbeat_at < now() - interval '60 s' THEN 'lost'
            WHEN w.heartbeat_at < now() - interval '15 s' THEN 'stale'
            WHEN w.draining THEN 'draining'
            ELSE 'live' END AS state,
       w.queues, w.labels, w.slots, w.running, coalesce(l.leases, 0) AS leases, l.first_lease_expires_at,
       w.started_at, w.heartbeat_at, w.stopped_at, w.drain_reason, w.suspects_only
  FROM onthedot.workers AS w
  LEFT JOIN (SELECT worker_id, count(*) AS leases, min(lease_expires_at) AS first_lease_expires_at
               FROM onthedot.executions
              WHERE status IN ('SCHEDULED', 'RUNNING')
              GROUP BY worker_id) AS l ON l.worker_id = w.worker_id;
---
COMMENT ON COLUMN audit.workers.suspects_only IS
    'True: a process that another worker began for executions that must run alone';
---
SELECT onthedot.ensure_roles();
