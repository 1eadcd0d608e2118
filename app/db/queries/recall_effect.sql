-- recall_effect: what an execution has recorded under a key; no row: nothing yet.
-- $1 shard (int2), $2 execution_id (uuid), $3 key (text)
-- index: primary key
SELECT result::text AS result FROM onthedot.effects WHERE shard = $1 AND execution_id = $2 AND key = $3
