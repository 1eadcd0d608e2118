-- stalled_steps: of the next $3 running steps after a place, those of which nothing is live any more: whoever ended the
-- last of it has not told the run, or there was nobody to (a cancel, a reaper).
-- $1 workflow_run_id (uuid) and $2 step (text) of the last one looked at, $3 how many to look at (int4)
-- Returns a row a step that was looked at last or is stalled; is_stalled tells which.
-- index: workflow_run_steps_running (workflow_run_id, step); executions_step (run_key)
WITH looked_at AS MATERIALIZED (
    SELECT shard, workflow_run_id, step, round
      FROM onthedot.workflow_run_steps
     WHERE status = 'RUNNING' AND (workflow_run_id, step) > ($1::uuid, $2::text COLLATE "C")
     ORDER BY workflow_run_id, step
     LIMIT $3
)
SELECT l.workflow_run_id, l.step, NOT EXISTS (
       SELECT FROM onthedot.executions AS e
        WHERE e.shard = l.shard AND e.trigger = 'workflow'
          AND e.run_key COLLATE "C" > format('w:%s/%s/%s/', l.workflow_run_id, l.step, l.round)
          AND e.run_key COLLATE "C" < format('w:%s/%s/%s:', l.workflow_run_id, l.step, l.round)) AS is_stalled
  FROM looked_at AS l
 ORDER BY l.workflow_run_id, l.step
