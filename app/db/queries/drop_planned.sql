-- drop_planned: take back what a job's schedule has planned after an instant and nobody has begun.
-- $1 shard (int2), $2 job_id (uuid), $3 after (timestamptz)
-- index: executions_one_per_instant (job_id, …). A SCHEDULED row is taken back from its worker: what is deleted
-- cannot be armed. A row that a claim holds at this moment is waited for, and left alone if it was begun.
DELETE FROM onthedot.executions AS e
 WHERE e.shard = $1 AND e.job_id = $2 AND e.scheduled_time > $3 AND e.trigger = 'schedule' AND e.run_key = ''
   AND e.status IN ('BLOCKED', 'PENDING', 'SCHEDULED') AND e.attempt_number = 0
RETURNING e.scheduled_time
