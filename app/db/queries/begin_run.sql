-- begin_run: begin a run of a workflow, under the id of the execution that begins it: a second attempt begins no second.
-- $1 shard (int2), $2 workflow_run_id (uuid), $3 workflow_id (uuid), $4 version (int4), $5 user_id (text),
-- $6 trigger (text), $7 scheduled_time (timestamptz), $8 parameters (text, JSON), $9 deadline in seconds (float8),
-- $10 it waits for another run to end (bool)
INSERT INTO onthedot.workflow_runs
       (shard, workflow_run_id, workflow_id, version, user_id, trigger, scheduled_time, parameters, deadline_at, is_queued)
SELECT $1, $2, $3, $4, $5, $6, $7, $8::text::jsonb, onthedot.start_deadline(now(), $9::float8), $10
    ON CONFLICT (workflow_run_id, shard) DO NOTHING
RETURNING workflow_run_id
