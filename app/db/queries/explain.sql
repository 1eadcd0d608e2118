-- explain: why one live execution waits: what each clause of the claim says of it, what lies around, and who is ahead.
-- $1 shard (int2), $2 execution_id (uuid), $3 most executions ahead to count (int4), $4 a worker's silence in seconds
-- after which it counts as none (float8), $5 all shards (int2[])
-- index: primary keys; audit_log_target; executions_ready (queue, priority, limited, due_at), two scans a priority and shard.
-- They end when $3 are counted; over all shards at once they would be merged in order, which takes twice as long.
-- Free is what others have not reserved (domain/slots.py); that those may use their own already is left out.
-- What is claimed before it: ready rows of its queue that are more urgent, or as urgent and due before.
WITH asked AS MATERIALIZED (
    SELECT shard, execution_id, job_id, queue, priority, status, due_at, held, limited, cancel_requested_at,
           worker_deaths, status IN ('PENDING', 'RETRYING') AS is_ready, due_at > now() AS is_early,
           CASE WHEN attempt_number = 0 THEN expires_at END AS expires_at,
           (attempt_number = 0 AND expires_at <= now()) IS TRUE AS is_expired
      FROM onthedot.executions
     WHERE shard = $1 AND execution_id = $2
)
SELECT a.job_id, a.queue, a.status, a.due_at, a.held, a.limited, a.cancel_requested_at, a.worker_deaths, a.is_ready, a.is_early,
       a.expires_at, a.is_expired,
       j.job_id IS NOT NULL AS job_paused, j.pause_reason AS job_paused_reason, j.paused_until AS job_paused_until,
       pausing.at AS job_paused_at, pausing.actor AS job_paused_by,
       q.paused_at AS queue_paused_at, q.paused_by AS queue_paused_by, q.paused_reason AS queue_paused_reason,
       q.paused_until AS queue_paused_until,
       w.workers, w.free_slots, ahead.ahead
  FROM asked AS a
  LEFT JOIN onthedot.jobs AS j ON j.shard = $1 AND j.job_id = a.job_id AND NOT j.is_active
  LEFT JOIN LATERAL (
       SELECT at, actor
         FROM onthedot.audit_log
        WHERE a.held AND target_type = 'job' AND target_id = a.job_id::text AND after @> '{"is_active": false}'
        ORDER BY audit_id DESC
        LIMIT 1) AS pausing ON true
  LEFT JOIN onthedot.queues AS q
         ON q.queue = a.queue AND q.paused_at IS NOT NULL AND (q.paused_until IS NULL OR q.paused_until > now())
 CROSS JOIN LATERAL (
       SELECT count(*)::int4 AS workers, coalesce(sum(greatest(w.slots - least(reserved.slots, w.slots / 2) - w.running, 0)), 0)::int4 AS free_slots
         FROM onthedot.workers AS w
        CROSS JOIN LATERAL (
              SELECT coalesce(sum(r.reserved_slots), 0) AS slots
                FROM onthedot.queues AS r
               WHERE r.queue <> a.queue AND (cardinality(w.queues) = 0 OR r.queue = ANY (w.queues))
                 AND (r.paused_at IS NULL OR r.paused_until <= now())) AS reserved
        WHERE stopped_at IS NULL AND NOT draining AND NOT suspects_only AND heartbeat_at >= now() - make_interval(secs => $4::float8)
          AND (cardinality(queues) = 0 OR a.queue = ANY (queues))) AS w
 CROSS JOIN LATERAL (
       SELECT count(*)::int4 AS ahead
         FROM (SELECT 1
                 FROM (VALUES (0::int2), (1::int2), (2::int2), (3::int2)) AS l (priority)
                CROSS JOIN (VALUES (false), (true)) AS k (limited)
                CROSS JOIN unnest($5::int2[]) AS s (shard)
                CROSS JOIN LATERAL (
                      SELECT e.due_at
                        FROM onthedot.executions AS e
                       WHERE e.shard = s.shard AND e.queue = a.queue AND e.priority = l.priority AND e.limited = k.limited
                         AND e.status IN ('PENDING', 'RETRYING') AND NOT e.held AND e.worker_deaths < 2
                         AND e.due_at < CASE WHEN l.priority < a.priority THEN now() ELSE a.due_at END
                       ORDER BY e.due_at
                       LIMIT $3::int4) AS e
                WHERE l.priority <= a.priority AND a.is_ready AND NOT a.is_early
                LIMIT $3::int4) AS counted) AS ahead
