-- blocked_executions: lock executions of one shard that wait for other jobs and are due soon.
-- $1 shard (int2), $2 due by (timestamptz), $3 and $4: after this one, in the order of due_at and execution_id
-- (timestamptz, uuid), $5 limit (int4)
-- index: executions_blocked (due_at, execution_id)
SELECT e.execution_id, e.job_id, e.scheduled_time, e.due_at, j.depends_on
  FROM onthedot.executions AS e
  JOIN onthedot.jobs AS j ON j.shard = e.shard AND j.job_id = e.job_id
 WHERE e.shard = $1 AND e.status = 'BLOCKED' AND e.due_at <= $2 AND (e.due_at, e.execution_id) > ($3, $4)
 ORDER BY e.due_at, e.execution_id
 LIMIT $5
   FOR UPDATE OF e SKIP LOCKED
