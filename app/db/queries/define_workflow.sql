-- define_workflow: add a version to a workflow, which its next runs are made of.
-- $1 shard (int2), $2 workflow_id (uuid), $3 steps (text, JSON), $4 overlap (text), $5 deadline_seconds (float8),
-- $6 who defines it so (text)
-- index: primary key. Who changes a workflow has locked its job.
INSERT INTO onthedot.workflow_definitions (shard, workflow_id, version, steps, overlap, deadline_seconds, created_by)
SELECT $1, $2, 1 + coalesce(max(version), 0), $3::text::jsonb, $4, $5, $6
  FROM onthedot.workflow_definitions
 WHERE shard = $1 AND workflow_id = $2
RETURNING version
