-- lock_limits: lock what is limited, as far as nobody else holds it, until the transaction ends; in the order of the keys.
-- $1 keys (text[]), sorted
-- No row is locked: a limit has none while nothing counts against it. Never waits: who comes second takes something else.
-- Two keys with one hash share their lock, which costs a chance now and then.
SELECT key FROM unnest($1::text[]) AS key WHERE pg_try_advisory_xact_lock(hashtextextended(key, 7))
