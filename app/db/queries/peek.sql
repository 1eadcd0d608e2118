-- peek: which shard, queue and priority holds ready work within the look-ahead, and from when on.
-- $1 look-ahead in seconds (float8), $2 queues served (text[]; empty: all)
-- index: executions_ready (queue, priority, due_at); PostgreSQL 18 skips from queue to queue in it,
-- so that future rows cost nothing (0.3 M of them: 2 ms). One grouped look, not one a shard and priority (20 ms).
SELECT shard, queue, priority, min(due_at) AS due_at
  FROM onthedot.executions
 WHERE status IN ('PENDING', 'RETRYING') AND NOT held
   AND due_at <= now() + make_interval(secs => $1::float8)
   AND (cardinality($2::text[]) = 0 OR queue = ANY ($2::text[]))
 GROUP BY shard, queue, priority
