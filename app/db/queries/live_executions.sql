-- live_executions: which of these executions have not ended.
-- One element an execution: $1 shards (int2[]), $2 execution_ids (uuid[])
-- index: primary key
SELECT e.execution_id
  FROM unnest($1::int2[], $2::uuid[]) AS w (shard, execution_id)
  JOIN onthedot.executions AS e ON e.shard = w.shard AND e.execution_id = w.execution_id
