-- limit_waiting: have live executions of one shard come under a limit that is new.
-- $1 whose limit: user, queue or task (text), $2 their id (text), $3 shard (int2)
-- No index but for users (executions_user): a look at every live row of the shard, for a change that is rare.
-- What was leased ahead is taken back, to be claimed beside the limit; what runs goes on, and counts (count_running.sql).
UPDATE onthedot.executions AS e
   SET limited = true,
       status = CASE WHEN e.status <> 'SCHEDULED' THEN e.status
                     WHEN e.attempt_number > 0 THEN 'RETRYING' ELSE 'PENDING' END,
       lease_epoch = e.lease_epoch + (e.status = 'SCHEDULED')::int,
       worker_id = CASE WHEN e.status <> 'SCHEDULED' THEN e.worker_id END,
       lease_expires_at = CASE WHEN e.status <> 'SCHEDULED' THEN e.lease_expires_at END,
       claimed_at = CASE WHEN e.status <> 'SCHEDULED' THEN e.claimed_at END
 WHERE e.shard = $3 AND NOT e.limited
   AND CASE $1 WHEN 'user' THEN e.user_id WHEN 'queue' THEN e.queue ELSE e.task_id END = $2
