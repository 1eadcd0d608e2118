-- suspects: executions that are ready and have ended, or stopped, two workers or more; the most urgent first.
-- $1 queues served (text[]; empty: all), $2 how many (int4)
-- index: executions_suspects (due_at), which holds next to nothing
SELECT e.shard, e.queue, e.priority, e.due_at, e.limited
  FROM onthedot.executions AS e
 WHERE e.worker_deaths >= 2 AND e.status IN ('PENDING', 'RETRYING') AND NOT e.held
   AND e.cancel_requested_at IS NULL AND e.due_at <= now()
   AND (cardinality($1::text[]) = 0 OR e.queue = ANY ($1::text[]))
   AND NOT EXISTS (SELECT FROM onthedot.queues AS q
                    WHERE q.queue = e.queue AND q.paused_at IS NOT NULL
                      AND (q.paused_until IS NULL OR q.paused_until > now()))
 ORDER BY e.priority, e.due_at
 LIMIT $2
