-- count_running: count what runs already against a limit that is new.
-- $1 whose limit: user, queue or task (text), $2 their id (text)
-- index: executions_lease, which holds no more than what the workers carry. What ends meanwhile leaves a row that counts
-- for nothing; stale_holders.sql finds it.
-- ON CONFLICT: what a lease before has left does not stand for this one, and would be swept away.
INSERT INTO onthedot.limit_holders AS h (key, execution_id, shard, lease_epoch, held_since)
SELECT $1 || ':' || $2, e.execution_id, e.shard, e.lease_epoch, e.claimed_at
  FROM onthedot.executions AS e
 WHERE e.status = 'RUNNING' AND CASE $1 WHEN 'user' THEN e.user_id WHEN 'queue' THEN e.queue ELSE e.task_id END = $2
    ON CONFLICT (key, execution_id) DO UPDATE
   SET lease_epoch = excluded.lease_epoch, held_since = excluded.held_since
 WHERE h.lease_epoch < excluded.lease_epoch
