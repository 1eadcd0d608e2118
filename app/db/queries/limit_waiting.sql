-- limit_waiting: have live executions of one shard come under a limit that is new. Returns how many are yet to be told: others
-- have locked them, such as a claim that is under way; waiting for one while others are locked here could be a circle.
-- $1 whose limit: user, queue or task (text), $2 their id (text), $3 shard (int2)
-- No index: a look at every live row of the shard, for a change that is rare.
-- What was leased ahead is taken back, to be claimed beside the limit; what runs goes on, and counts (count_running.sql).
WITH unaware AS MATERIALIZED (
    SELECT e.execution_id
      FROM onthedot.executions AS e
     WHERE e.shard = $3 AND NOT e.limited
       AND CASE $1 WHEN 'user' THEN e.user_id WHEN 'queue' THEN e.queue ELSE e.task_id END = $2
), locked AS MATERIALIZED (
    SELECT e.execution_id
      FROM onthedot.executions AS e
     WHERE e.shard = $3 AND e.execution_id = ANY (ARRAY(SELECT execution_id FROM unaware))
       FOR NO KEY UPDATE SKIP LOCKED
), told AS (
    UPDATE onthedot.executions AS e
       SET limited = true,
           status = CASE WHEN e.status <> 'SCHEDULED' THEN e.status
                         WHEN e.attempt_number > 0 THEN 'RETRYING' ELSE 'PENDING' END,
           lease_epoch = e.lease_epoch + (e.status = 'SCHEDULED')::int,
           worker_id = CASE WHEN e.status <> 'SCHEDULED' THEN e.worker_id END,
           lease_expires_at = CASE WHEN e.status <> 'SCHEDULED' THEN e.lease_expires_at END,
           claimed_at = CASE WHEN e.status <> 'SCHEDULED' THEN e.claimed_at END
     WHERE e.shard = $3 AND e.execution_id = ANY (ARRAY(SELECT execution_id FROM locked))
    RETURNING e.execution_id
)
SELECT ((SELECT count(*) FROM unaware) - (SELECT count(*) FROM told))::int4 AS left_out
