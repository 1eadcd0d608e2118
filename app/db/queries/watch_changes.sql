-- watch_changes: marks that differ as soon as something that pages show has changed; what they are means nothing.
-- index: audit_log's primary key; the primary keys of executions, whose ids sort by time; executions_lease, which holds
-- no more than the workers carry, each row's epoch mixed in, so that claims, ends and retries show and renewals do not;
-- history_queue (queue, completed_at), one probe a queue and day, for what ended within an hour.
SELECT coalesce((SELECT max(audit_id) FROM onthedot.audit_log), 0)::text AS definitions,
       concat_ws(' ',
           (SELECT execution_id FROM onthedot.executions ORDER BY execution_id DESC LIMIT 1),
           (SELECT bit_xor(hashtextextended(execution_id::text, lease_epoch))
              FROM onthedot.executions
             WHERE status IN ('SCHEDULED', 'RUNNING')),
           (SELECT max(last.completed_at)
              FROM onthedot.queues AS q
             CROSS JOIN LATERAL (
                   SELECT h.completed_at
                     FROM onthedot.execution_history AS h
                    WHERE h.queue = q.queue AND h.completed_at > now() - interval '1 h'
                    ORDER BY h.completed_at DESC
                    LIMIT 1) AS last)) AS executions,
       (SELECT coalesce(bit_xor(hashtextextended(worker_id::text, CASE WHEN draining THEN 1 ELSE 0 END)), 0)
          FROM onthedot.workers
         WHERE stopped_at IS NULL AND heartbeat_at > now() - interval '15 s')::text AS workers
