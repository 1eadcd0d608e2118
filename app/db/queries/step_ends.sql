-- step_ends: how the executions of steps have ended, of those steps of which none is live any more.
-- One element a step: $1 shards (int2[]), $2 workflow_run_ids (uuid[]), $3 steps (text[]), $4 rounds (int4[]),
-- $5 none of them began before (timestamptz), $6 none of them ended after (timestamptz)
-- index: executions_step and history_step (run_key). Both bounds of completed_at and the shards once more are for the
-- planner: without them it looks at every partition, which takes longer than the statement. One snapshot: an execution is live or ended, never both or neither.
SELECT s.workflow_run_id, s.step, s.round, ended.completed, ended.failed, ended.cancelled, ended.skipped, ended.message
  FROM unnest($1::int2[], $2::uuid[], $3::text[], $4::int4[]) AS s (shard, workflow_run_id, step, round)
 CROSS JOIN LATERAL (SELECT format('w:%s/%s/%s/', s.workflow_run_id, s.step, s.round) COLLATE "C" AS prefix) AS p
 CROSS JOIN LATERAL (
       SELECT count(*) FILTER (WHERE h.status = 'COMPLETED') AS completed,
              count(*) FILTER (WHERE h.status = 'FAILED') AS failed,
              count(*) FILTER (WHERE h.status = 'CANCELLED') AS cancelled,
              count(*) FILTER (WHERE h.status = 'SKIPPED') AS skipped,
              min(left(h.error ->> 'message', 500)) FILTER (WHERE h.status = 'FAILED') AS message
         FROM onthedot.execution_history AS h
        WHERE h.trigger = 'workflow' AND h.completed_at BETWEEN $5 AND $6
          AND h.run_key COLLATE "C" > p.prefix AND h.run_key COLLATE "C" < p.prefix || ':') AS ended
 WHERE NOT EXISTS (SELECT FROM onthedot.executions AS e
                    WHERE e.shard = ANY ($1::int2[]) AND e.shard = s.shard AND e.trigger = 'workflow'
                      AND e.run_key COLLATE "C" > p.prefix AND e.run_key COLLATE "C" < p.prefix || ':')
