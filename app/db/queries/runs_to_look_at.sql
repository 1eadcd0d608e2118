-- runs_to_look_at: runs under way that are past their deadline, or that wait for no other run any more.
-- $1 limit (int4)
-- index: workflow_runs_deadline (deadline_at); workflow_runs_under_way (workflow_id)
(SELECT shard, workflow_run_id, true AS is_past_deadline
   FROM onthedot.workflow_runs
  WHERE status = 'RUNNING' AND deadline_at <= now() AND ends_as IS NULL
  ORDER BY deadline_at
  LIMIT $1)
 UNION ALL
(SELECT DISTINCT ON (q.workflow_id) q.shard, q.workflow_run_id, false
   FROM onthedot.workflow_runs AS q
  WHERE q.status = 'RUNNING' AND q.is_queued
    AND NOT EXISTS (SELECT FROM onthedot.workflow_runs AS r
                     WHERE r.shard = q.shard AND r.workflow_id = q.workflow_id AND r.status = 'RUNNING'
                       AND NOT r.is_queued)
  ORDER BY q.workflow_id, q.started_at, q.workflow_run_id
  LIMIT $1)
