-- run_definition: what a run is made of, and since when it is under way.
-- $1 shard (int2), $2 workflow_run_id (uuid)
-- index: primary key
SELECT workflow_id, version, started_at, now() AS now
  FROM onthedot.workflow_runs
 WHERE shard = $1 AND workflow_run_id = $2
