-- step_instances: the executions of one round of a run's step, in the order of the items that it maps over.
-- $1 shard (int2), $2 the beginning of their run_key (text), $3 none of them ended before (timestamptz),
-- $4 the first index (int4), $5 only of this status (text, null: all), $6 at most so many (int4)
-- index: executions_step and history_step (run_key)
SELECT instance, execution_id
  FROM (SELECT split_part(run_key, '/', 4)::int4 AS instance, execution_id, status
          FROM onthedot.executions
         WHERE shard = $1 AND trigger = 'workflow'
           AND run_key COLLATE "C" > $2::text AND run_key COLLATE "C" < $2::text || '~'
        UNION
        SELECT split_part(run_key, '/', 4)::int4, execution_id, status
          FROM onthedot.execution_history
         WHERE shard = $1 AND trigger = 'workflow' AND completed_at >= $3
           AND run_key COLLATE "C" > $2::text AND run_key COLLATE "C" < $2::text || '~') AS e
 WHERE instance >= $4 AND ($5::text IS NULL OR status = $5)
 ORDER BY instance
 LIMIT $6
