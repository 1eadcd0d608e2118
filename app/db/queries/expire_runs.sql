-- expire_runs: delete runs that were over so many days ago, with their steps.
-- $1 days (int4), $2 limit (int4)
-- index: workflow_runs_over (completed_at); primary key of steps
WITH old AS MATERIALIZED (
    SELECT shard, workflow_run_id
      FROM onthedot.workflow_runs
     WHERE completed_at < now() - make_interval(days => $1)
     LIMIT $2
       FOR UPDATE SKIP LOCKED
), steps AS (
    DELETE FROM onthedot.workflow_run_steps AS s USING old
     WHERE s.shard = old.shard AND s.workflow_run_id = old.workflow_run_id
)
DELETE FROM onthedot.workflow_runs AS r USING old
 WHERE r.shard = old.shard AND r.workflow_run_id = old.workflow_run_id
RETURNING r.workflow_run_id
