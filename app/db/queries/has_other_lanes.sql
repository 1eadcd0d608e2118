-- has_other_lanes: whether what is ready in one shard, queue and priority lies in more than one lane. Where it does not,
-- there is nobody to take turns, and claim_due.sql does.
-- $1 shard (int2), $2 queue (text), $3 priority (int2), $4 low-water mark (timestamptz)
-- index: executions_lanes (queue, priority, user_id, lane, due_at), two steps in it; see candidates_by_lane.sql
SELECT EXISTS (
       SELECT FROM (
              SELECT e.user_id, onthedot.lane_of(e.limited, e.task_id, e.concurrency_key, e.overlap, e.job_id) COLLATE "C" AS lane
                FROM onthedot.executions AS e
               WHERE e.shard = $1 AND e.queue = $2 AND e.priority = $3
                 AND e.status IN ('PENDING', 'RETRYING') AND NOT e.held AND e.worker_deaths < 2
                 AND e.due_at >= $4::timestamptz
               ORDER BY e.user_id, onthedot.lane_of(e.limited, e.task_id, e.concurrency_key, e.overlap, e.job_id) COLLATE "C",
                        e.due_at
               LIMIT 1) AS first
        CROSS JOIN LATERAL (
              SELECT e.user_id
                FROM onthedot.executions AS e
               WHERE e.shard = $1 AND e.queue = $2 AND e.priority = $3
                 AND e.status IN ('PENDING', 'RETRYING') AND NOT e.held AND e.worker_deaths < 2
                 AND e.due_at >= $4::timestamptz
                 AND (e.user_id, onthedot.lane_of(e.limited, e.task_id, e.concurrency_key, e.overlap, e.job_id) COLLATE "C")
                     > (first.user_id, first.lane)
               ORDER BY e.user_id, onthedot.lane_of(e.limited, e.task_id, e.concurrency_key, e.overlap, e.job_id) COLLATE "C",
                        e.due_at
               LIMIT 1) AS next)
