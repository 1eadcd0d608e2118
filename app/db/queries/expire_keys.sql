-- expire_keys: delete up to $1 answers kept under an Idempotency-Key that are 24 hours old.
-- $1 limit (int4)
-- index: idempotency_keys_age, primary key
WITH old AS MATERIALIZED (
    SELECT key_hash
      FROM onthedot.idempotency_keys
     WHERE created_at < now() - interval '24 hours'
     LIMIT $1::int4
       FOR UPDATE SKIP LOCKED
)
DELETE FROM onthedot.idempotency_keys AS k USING old WHERE k.key_hash = old.key_hash
RETURNING k.key_hash
