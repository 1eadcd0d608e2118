-- shards_to_unblock: in which shards executions wait for other jobs and are due soon.
-- $1 shards (int2[]), $2 due by (timestamptz)
-- index: executions_blocked (due_at, execution_id), its first entry in each shard
SELECT s.shard
  FROM unnest($1::int2[]) AS s (shard)
 CROSS JOIN LATERAL (
       SELECT FROM onthedot.executions
        WHERE shard = s.shard AND status = 'BLOCKED' AND due_at <= $2
        ORDER BY due_at
        LIMIT 1) AS first
