-- runs_under_way: the runs of a workflow that are not over, the oldest first.
-- $1 shard (int2), $2 workflow_id (uuid)
-- index: workflow_runs_under_way (workflow_id)
SELECT workflow_run_id, is_queued
  FROM onthedot.workflow_runs
 WHERE shard = $1 AND workflow_id = $2 AND status = 'RUNNING'
 ORDER BY started_at, workflow_run_id
