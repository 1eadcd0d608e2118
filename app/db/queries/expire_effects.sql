-- expire_effects: delete up to $2 records of effects that are old and whose executions have ended.
-- $1 retention in days (int4), $2 limit (int4)
-- index: effects_age, primary key; executions primary key
WITH old AS MATERIALIZED (
    SELECT shard, execution_id, key
      FROM onthedot.effects AS f
     WHERE recorded_at < now() - make_interval(days => $1::int4)
       AND NOT EXISTS (SELECT FROM onthedot.executions AS e
                        WHERE e.shard = f.shard AND e.execution_id = f.execution_id)
     LIMIT $2::int4
       FOR UPDATE SKIP LOCKED
)
DELETE FROM onthedot.effects AS f USING old
 WHERE f.shard = old.shard AND f.execution_id = old.execution_id AND f.key = old.key
RETURNING f.key
