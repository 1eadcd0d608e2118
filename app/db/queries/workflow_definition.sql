-- workflow_definition: what the runs of a workflow are made of: of a version, or of the one that holds for new runs.
-- $1 shard (int2), $2 workflow_id (uuid), $3 version (int4; null: the highest)
-- index: primary key
SELECT version, steps::text AS steps, overlap, deadline_seconds, created_by, created_at
  FROM onthedot.workflow_definitions
 WHERE shard = $1 AND workflow_id = $2 AND version = coalesce($3::int4, version)
 ORDER BY version DESC
 LIMIT 1
