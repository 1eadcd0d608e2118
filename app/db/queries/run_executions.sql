-- run_executions: of each round of a run's steps, how many executions have which status, and what they came to together.
-- $1 shard (int2), $2 the beginning of their run_key (text), $3 none of them ended before (timestamptz)
-- index: executions_step and history_step (run_key). execution_id is one of them: where a step has one, it is that.
SELECT step, round, status, count(*) AS executions, (array_agg(execution_id))[1] AS execution_id,
       min(started_at) AS started_at, max(completed_at) AS completed_at, max(attempt_number) AS attempt_number
  FROM (SELECT split_part(run_key, '/', 2) AS step, split_part(run_key, '/', 3)::int4 AS round, status, execution_id,
               attempt_number, coalesce(started_at, CASE WHEN status = 'RUNNING' THEN claimed_at END) AS started_at,
               NULL::timestamptz AS completed_at
          FROM onthedot.executions
         WHERE shard = $1 AND trigger = 'workflow'
           AND run_key COLLATE "C" > $2::text AND run_key COLLATE "C" < $2::text || '~'
        UNION ALL
        SELECT split_part(run_key, '/', 2), split_part(run_key, '/', 3)::int4, status, execution_id, attempt_number,
               started_at, completed_at
          FROM onthedot.execution_history
         WHERE shard = $1 AND trigger = 'workflow' AND completed_at >= $3
           AND run_key COLLATE "C" > $2::text AND run_key COLLATE "C" < $2::text || '~') AS e
 GROUP BY step, round, status
