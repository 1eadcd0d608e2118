-- drop_planned: take back what a job's schedule has planned after an instant and nobody has begun.
-- $1 shard (int2), $2 job_id (uuid), $3 after (timestamptz)
-- index: executions_one_per_instant (job_id, …). A SCHEDULED row is taken back from its worker: what is deleted
-- cannot be armed. A row that a claim holds at this moment is waited for, and left alone if it was begun.
-- Locked in the order of their ids and then by these: as in replan_waiting.sql
WITH waiting AS MATERIALIZED (
    SELECT execution_id
      FROM onthedot.executions
     WHERE shard = $1 AND job_id = $2 AND scheduled_time > $3 AND trigger = 'schedule' AND run_key = ''
       AND status IN ('BLOCKED', 'PENDING', 'SCHEDULED') AND attempt_number = 0
     ORDER BY execution_id
       FOR UPDATE
)
DELETE FROM onthedot.executions AS e
 WHERE e.shard = $1 AND e.execution_id = ANY (ARRAY(SELECT execution_id FROM waiting))
RETURNING e.scheduled_time
