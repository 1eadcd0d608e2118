-- peek: which shard, queue and priority holds ready work, with limits and without, within the look-ahead, and from when on.
-- $1 look-ahead in seconds (float8), $2 queues served (text[]; empty: all), and one element a shard: $3 shards (int2[]),
-- $4 the instant from which on to look (timestamptz[])
-- index: executions_ready (queue, priority, limited, due_at), from place to place in it: what it costs grows with the places
-- (6 µs each), not with what waits there (100,000 due: 0.8 ms; a grouped minimum read them all: 46 ms).
-- The look-ahead is judged outside: inside, the walk would end at a place whose work is all in the future.
-- due_at >= mark passes over entries of executions that are gone without a look at their rows.
-- Citus takes no recursion over shards: there it is one statement a shard, `shard = $3`.
WITH RECURSIVE place AS (
    SELECT s.shard, s.mark, e.queue, e.priority, e.limited, e.due_at
      FROM unnest($3::int2[], $4::timestamptz[]) AS s (shard, mark)
     CROSS JOIN LATERAL (
           SELECT queue, priority, limited, due_at
             FROM onthedot.executions
            WHERE shard = s.shard AND status IN ('PENDING', 'RETRYING') AND NOT held AND worker_deaths < 2
              AND due_at >= s.mark
            ORDER BY queue, priority, limited, due_at
            LIMIT 1) AS e
     UNION ALL
    SELECT p.shard, p.mark, e.queue, e.priority, e.limited, e.due_at
      FROM place AS p
     CROSS JOIN LATERAL (
           SELECT queue, priority, limited, due_at
             FROM onthedot.executions
            WHERE shard = p.shard AND status IN ('PENDING', 'RETRYING') AND NOT held AND worker_deaths < 2
              AND due_at >= p.mark AND (queue, priority, limited) > (p.queue, p.priority, p.limited)
            ORDER BY queue, priority, limited, due_at
            LIMIT 1) AS e
)
SELECT shard, queue, priority, due_at, limited
  FROM place
 WHERE due_at <= now() + make_interval(secs => $1::float8)
   AND (cardinality($2::text[]) = 0 OR queue = ANY ($2::text[]))
