-- unblock: let executions of one shard begin that have waited for other jobs.
-- $1 shard (int2), $2 execution_ids (uuid[])
-- index: primary key. The rows are locked (blocked_executions.sql). Lateness counts from now on, or from the instant.
UPDATE onthedot.executions AS e
   SET status = 'PENDING', due_at = greatest(e.due_at, now()), first_due_at = greatest(e.first_due_at, now())
 WHERE e.shard = $1 AND e.execution_id = ANY ($2::uuid[]) AND e.status = 'BLOCKED'
RETURNING e.queue, e.priority, e.due_at, e.limited
