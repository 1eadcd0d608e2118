-- renew_deadline: give a run that is tried again as much time as a new one.
-- $1 shard (int2), $2 workflow_run_id (uuid), $3 seconds (float8; null: no deadline)
-- index: primary key
UPDATE onthedot.workflow_runs
   SET deadline_at = onthedot.start_deadline(now(), $3::float8)
 WHERE shard = $1 AND workflow_run_id = $2
