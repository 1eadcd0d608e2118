-- explain_hosts: where live workers serve a queue: what each host has to give, and whether some worker there offers labels.
-- $1 queue (text), $2 labels that are required (jsonb), $3 a worker's silence in seconds after which it counts as none (float8)
-- index: workers_alive, which holds the workers there are
SELECT host, max(cpu_cores)::float8 AS cpu_cores, max(memory_mb)::int4 AS memory_mb, bool_or(labels @> $2::jsonb) AS has_labels
  FROM onthedot.workers
 WHERE stopped_at IS NULL AND NOT draining AND NOT suspects_only AND heartbeat_at >= now() - make_interval(secs => $3::float8)
   AND (cardinality(queues) = 0 OR $1 = ANY (queues))
 GROUP BY host
 ORDER BY host
 LIMIT 1000
