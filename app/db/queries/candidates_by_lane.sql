-- candidates_by_lane: lock due executions of one shard, queue and priority, some of each lane in turn, and tell what limits
-- them. It is asked where a backlog stands: one user's million must not stand before another one's ten, nor what a limit
-- keeps waiting before what may run.
-- $1 shard (int2), $2 queue (text), $3 priority (int2), $4 limit (int4), $5 labels that the worker offers (jsonb),
-- $6 cores of its host (float8), $7 memory of its host in MiB (int4), $8 low-water mark (timestamptz),
-- $9 user and $10 lane visited last (text), $11 most lanes to visit (int4)
-- Returns a row a candidate, each with the lane visited last (the first columns); without candidates one row of that alone.
-- index: executions_lanes (queue, priority, user_id, lane, due_at), from lane to lane in it; lane_of(…) COLLATE "C"
-- stands there as here. A user whose quota is full is passed over as a whole: their lanes may be many.
-- The first step stands apart though it is like the others: with the cursor itself as the first row of the walk a drain of
-- 10,000 keys fell from 7,200 to 3,900 executions a second.
WITH RECURSIVE visit AS (
    SELECT s.*, 1 AS visited
      FROM (
           SELECT e.user_id,
                  onthedot.lane_of(e.limited, e.task_id, e.concurrency_key, e.overlap, e.job_id) COLLATE "C" AS lane,
                  e.due_at,
                  EXISTS (SELECT FROM onthedot.users AS u
                           WHERE e.limited AND u.user_id = e.user_id AND u.max_concurrent_jobs <= (
                                 SELECT count(*) FROM onthedot.limit_holders AS h WHERE h.key = 'user:' || e.user_id))
                  AS user_is_full
             FROM onthedot.executions AS e
            WHERE e.shard = $1 AND e.queue = $2 AND e.priority = $3
              AND e.status IN ('PENDING', 'RETRYING') AND NOT e.held AND e.worker_deaths < 2
              AND e.due_at >= $8::timestamptz
              AND (e.user_id, onthedot.lane_of(e.limited, e.task_id, e.concurrency_key, e.overlap, e.job_id) COLLATE "C")
                  > ($9::text, $10::text)
            ORDER BY e.user_id, onthedot.lane_of(e.limited, e.task_id, e.concurrency_key, e.overlap, e.job_id) COLLATE "C",
                     e.due_at
            LIMIT 1) AS s
     UNION ALL
    SELECT s.*, p.visited + 1
      FROM visit AS p
     CROSS JOIN LATERAL (
           SELECT e.user_id,
                  onthedot.lane_of(e.limited, e.task_id, e.concurrency_key, e.overlap, e.job_id) COLLATE "C" AS lane,
                  e.due_at,
                  EXISTS (SELECT FROM onthedot.users AS u
                           WHERE e.limited AND u.user_id = e.user_id AND u.max_concurrent_jobs <= (
                                 SELECT count(*) FROM onthedot.limit_holders AS h WHERE h.key = 'user:' || e.user_id))
                  AS user_is_full
             FROM onthedot.executions AS e
            WHERE e.shard = $1 AND e.queue = $2 AND e.priority = $3
              AND e.status IN ('PENDING', 'RETRYING') AND NOT e.held AND e.worker_deaths < 2
              AND e.due_at >= $8::timestamptz
              AND (e.user_id, onthedot.lane_of(e.limited, e.task_id, e.concurrency_key, e.overlap, e.job_id) COLLATE "C")
                  > (p.user_id, CASE WHEN p.user_is_full THEN chr(1114111) ELSE p.lane END COLLATE "C")
            ORDER BY e.user_id, onthedot.lane_of(e.limited, e.task_id, e.concurrency_key, e.overlap, e.job_id) COLLATE "C",
                     e.due_at
            LIMIT 1) AS s
     WHERE p.visited < $11::int4
), due AS MATERIALIZED (
    SELECT c.*
      FROM visit
     CROSS JOIN LATERAL (
           SELECT *
             FROM onthedot.executions AS e
            WHERE e.shard = $1 AND e.queue = $2 AND e.priority = $3
              AND e.status IN ('PENDING', 'RETRYING') AND NOT e.held AND e.worker_deaths < 2
              AND e.cancel_requested_at IS NULL
              AND (e.expires_at IS NULL OR e.expires_at > now() OR e.attempt_number > 0)
              AND e.user_id = visit.user_id
              AND onthedot.lane_of(e.limited, e.task_id, e.concurrency_key, e.overlap, e.job_id) COLLATE "C" = visit.lane
              AND e.due_at >= $8::timestamptz AND e.due_at <= now()
              AND NOT EXISTS (SELECT FROM onthedot.queues AS q
                               WHERE q.queue = $2 AND q.paused_at IS NOT NULL
                                 AND (q.paused_until IS NULL OR q.paused_until > now()))
            ORDER BY e.due_at
            LIMIT (SELECT ceil($4::float8 / greatest(count(*), 1))::int4
                     FROM visit WHERE NOT user_is_full AND due_at <= now())
              FOR UPDATE SKIP LOCKED) AS c
     WHERE NOT visit.user_is_full AND visit.due_at <= now()
), fitting AS (
    SELECT c.execution_id, c.job_id, c.user_id, c.task_id, c.due_at, c.trigger, c.attempt_number, c.overlap, c.limited,
           c.concurrency_key, c.concurrency_limit,
           u.max_concurrent_jobs, u.rate_per_second AS user_rate, u.rate_burst AS user_burst,
           t.concurrency, t.rate_per_second AS task_rate, t.rate_burst AS task_burst, t.cpu_cores, t.memory_mb,
           q.max_concurrency, q.rate_per_second AS queue_rate, q.rate_burst AS queue_burst
      FROM due AS c
      LEFT JOIN onthedot.users AS u ON u.user_id = c.user_id
      LEFT JOIN onthedot.tasks AS t ON t.task_id = c.task_id
      LEFT JOIN onthedot.queues AS q ON q.queue = $2
     WHERE (t.task_id IS NULL OR (t.labels <@ $5::jsonb AND t.cpu_cores <= $6::float8 AND t.memory_mb <= $7::int4))
)
SELECT last.user_id AS last_user_id, last.lane AS last_lane, last.visited, f.*
  FROM (SELECT user_id, lane, visited FROM visit ORDER BY visited DESC LIMIT 1) AS last
  LEFT JOIN fitting AS f ON true
 ORDER BY f.due_at
