-- expire_definitions: delete definitions that no run is made of and no run will be: another version holds, or the workflow
-- is gone.
-- $1 days that they have been there at least (int4), $2 limit (int4)
-- index: primary keys; workflow_runs_workflow (workflow_id). A walk through all definitions, each sweep.
WITH unused AS MATERIALIZED (
    SELECT d.shard, d.workflow_id, d.version
      FROM onthedot.workflow_definitions AS d
     WHERE d.created_at < now() - make_interval(days => $1)
       AND NOT EXISTS (SELECT FROM onthedot.workflow_runs AS r
                        WHERE r.shard = d.shard AND r.workflow_id = d.workflow_id AND r.version = d.version)
       AND (NOT EXISTS (SELECT FROM onthedot.jobs AS j WHERE j.shard = d.shard AND j.job_id = d.workflow_id)
            OR EXISTS (SELECT FROM onthedot.workflow_definitions AS n
                        WHERE n.shard = d.shard AND n.workflow_id = d.workflow_id AND n.version > d.version))
     LIMIT $2
)
DELETE FROM onthedot.workflow_definitions AS d USING unused
 WHERE d.shard = unused.shard AND d.workflow_id = unused.workflow_id AND d.version = unused.version
RETURNING d.workflow_id
