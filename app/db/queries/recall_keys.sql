-- recall_keys: the kept answers to requests under an Idempotency-Key.
-- $1 key_hashes (bytea[])
-- index: primary key
SELECT key_hash, request_hash, status_code, headers::text, answer
  FROM onthedot.idempotency_keys
 WHERE key_hash = ANY ($1::bytea[])
