-- begin_steps: write down the steps of a run that begins; all of them wait.
-- $1 shard (int2), $2 workflow_run_id (uuid), $3 steps (text[])
INSERT INTO onthedot.workflow_run_steps (shard, workflow_run_id, step)
SELECT $1, $2, step FROM unnest($3::text[]) AS step
