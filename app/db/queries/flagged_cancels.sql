-- flagged_cancels: which executions of a worker have been asked to stop.
-- $1 worker_id (uuid)
-- index: executions_cancelling (worker_id) WHERE cancel_requested_at IS NOT NULL
SELECT execution_id
  FROM onthedot.executions
 WHERE worker_id = $1 AND cancel_requested_at IS NOT NULL
