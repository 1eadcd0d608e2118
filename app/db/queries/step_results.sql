-- step_results: what the completed executions of steps have returned, a row an execution.
-- One element a step: $1 workflow_run_ids (uuid[]), $2 steps (text[]), $3 rounds (int4[]),
-- $4 none of them ended before (timestamptz), $5 none of them ended after (timestamptz),
-- $6 the most bytes of one step (int4)
-- index: history_step (run_key). Of a step whose results are larger together no result is returned, but how large they are:
-- nobody could use them, and they might be gigabytes.
SELECT s.workflow_run_id, s.step, r.index, CASE WHEN r.bytes <= $6::int4 THEN r.result END AS result, r.bytes,
       r.result_truncated
  FROM unnest($1::uuid[], $2::text[], $3::int4[]) AS s (workflow_run_id, step, round)
 CROSS JOIN LATERAL (SELECT format('w:%s/%s/%s/', s.workflow_run_id, s.step, s.round) COLLATE "C" AS prefix) AS p
 CROSS JOIN LATERAL (
       SELECT split_part(h.run_key, '/', 4)::int4 AS index, h.result::text AS result, h.result_truncated,
              sum(octet_length(h.result::text)) OVER () AS bytes
         FROM onthedot.execution_history AS h
        WHERE h.trigger = 'workflow' AND h.status = 'COMPLETED' AND h.completed_at BETWEEN $4 AND $5
          AND h.run_key COLLATE "C" > p.prefix AND h.run_key COLLATE "C" < p.prefix || ':') AS r
