-- has_other_users: whether what is ready in one shard, queue and priority is several users'. Where it is one's alone, nobody
-- stands before another one, and candidates_oldest.sql may do.
-- $1 shard (int2), $2 queue (text), $3 priority (int2), $4 low-water mark (timestamptz)
-- index: executions_lanes (queue, priority, user_id, lane, due_at), its two ends
SELECT min(e.user_id) IS DISTINCT FROM max(e.user_id)
  FROM onthedot.executions AS e
 WHERE e.shard = $1 AND e.queue = $2 AND e.priority = $3
   AND e.status IN ('PENDING', 'RETRYING') AND NOT e.held AND e.worker_deaths < 2
   AND e.due_at >= $4::timestamptz
