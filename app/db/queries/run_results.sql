-- run_results: what the completed executions of a run have returned.
-- $1 shard (int2), $2 the beginning of their run_key (text), $3 none of them ended before (timestamptz),
-- $4 of a step's executions only those with an index below (int4), $5 the most bytes of all together (int4): beyond it
-- results are left out
-- index: history_step (run_key)
SELECT step, round, instance, result
  FROM (SELECT split_part(run_key, '/', 2) AS step, split_part(run_key, '/', 3)::int4 AS round,
               split_part(run_key, '/', 4)::int4 AS instance, result::text AS result,
               sum(octet_length(result::text)) OVER (ORDER BY run_key COLLATE "C") AS bytes
          FROM onthedot.execution_history
         WHERE shard = $1 AND trigger = 'workflow' AND completed_at >= $3 AND status = 'COMPLETED'
           AND run_key COLLATE "C" > $2::text AND run_key COLLATE "C" < $2::text || '~'
           AND split_part(run_key, '/', 4)::int4 < $4) AS r
 WHERE bytes <= $5
