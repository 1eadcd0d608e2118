-- forget_keys: take back keys whose effect did not come about, in the same transaction.
-- $1 key_hashes (bytea[])
-- index: primary key
DELETE FROM onthedot.idempotency_keys WHERE key_hash = ANY ($1::bytea[])
