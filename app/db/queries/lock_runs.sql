-- lock_runs: lock runs whose steps are to be changed, in the order of their ids.
-- $1 their shards (int2[]), $2 workflow_run_ids (uuid[]), $3 only those that are under way (bool)
-- index: primary key. What the steps' states are is read after this, in a statement of its own: it then sees what whoever
-- held the lock before has written.
SELECT shard, workflow_run_id, workflow_id, version, user_id, status, parameters::text AS parameters, is_queued, ends_as,
       cause, started_at, now() AS now
  FROM onthedot.workflow_runs
 WHERE shard = ANY ($1::int2[]) AND workflow_run_id = ANY ($2::uuid[]) AND (status = 'RUNNING' OR NOT $3)
 ORDER BY workflow_run_id
   FOR UPDATE
