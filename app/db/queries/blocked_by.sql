-- blocked_by: executions that wait for one of these jobs and are due soon, each with its shard.
-- $1 job_ids (uuid[]), $2 due by (timestamptz), $3 limit (int4)
-- index: jobs_dependent; executions_one_per_instant (job_id, …)
SELECT DISTINCT e.shard
  FROM onthedot.jobs AS j
  JOIN onthedot.executions AS e ON e.shard = j.shard AND e.job_id = j.job_id AND e.status = 'BLOCKED' AND e.due_at <= $2
 WHERE j.depends_on <> '{}' AND j.depends_on && $1::uuid[]
 LIMIT $3
