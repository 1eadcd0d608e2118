-- expire_batches: delete up to $2 batches whose jobs were created long ago and have all ended.
-- $1 retention in days (int4), $2 limit (int4)
-- index: primary keys: the ids of what a batch began with lie together; executions_batch, of what was run again
WITH old AS MATERIALIZED (
    SELECT batch_id
      FROM onthedot.batches AS b
     WHERE created_at < now() - make_interval(days => $1::int4)
       AND NOT EXISTS (SELECT FROM onthedot.executions AS e
                        WHERE e.execution_id BETWEEN b.first_execution_id AND b.last_execution_id
                          AND e.batch_id = b.batch_id)
       AND NOT EXISTS (SELECT FROM onthedot.executions AS e WHERE e.batch_id = b.batch_id AND e.run_key <> '')
     LIMIT $2::int4
       FOR UPDATE SKIP LOCKED
)
DELETE FROM onthedot.batches AS b USING old WHERE b.batch_id = old.batch_id
RETURNING b.batch_id
