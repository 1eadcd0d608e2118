-- stop_steps: flag the executions of a run that are running; their workers are told, and look each second.
-- $1 shard (int2), $2 the beginning of their run_key (text), $3 error (text, JSON: who cancels them and why)
-- index: executions_step (run_key). Locked in the order of their ids: as in cancel_steps.sql
WITH running AS MATERIALIZED (
    SELECT execution_id
      FROM onthedot.executions
     WHERE shard = $1 AND trigger = 'workflow' AND run_key COLLATE "C" > $2 AND run_key COLLATE "C" < $2 || '~'
       AND status = 'RUNNING'
     ORDER BY execution_id
       FOR UPDATE
)
UPDATE onthedot.executions AS e
   SET cancel_requested_at = now(), error = $3::text::jsonb
 WHERE e.shard = $1 AND e.execution_id = ANY (ARRAY(SELECT execution_id FROM running)) AND e.status = 'RUNNING'
   AND e.cancel_requested_at IS NULL
RETURNING e.execution_id
