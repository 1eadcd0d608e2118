-- request_cancel: flag a running execution; its worker is told, and looks at its flagged rows each second.
-- $1 shard (int2), $2 execution_id (uuid), $3 now (timestamptz), $4 error (text, JSON: who cancels it and why)
-- index: primary key
UPDATE onthedot.executions AS e
   SET cancel_requested_at = coalesce(e.cancel_requested_at, $3::timestamptz), error = $4::text::jsonb
 WHERE e.shard = $1 AND e.execution_id = $2 AND e.status = 'RUNNING'
RETURNING e.worker_id
