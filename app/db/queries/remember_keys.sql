-- remember_keys: keep the answers to requests under an Idempotency-Key, in the transaction of their effect.
-- One element a request: $1 key_hashes (bytea[]), $2 request_hashes (bytea[]), $3 status codes (int2[]), $4 answers (bytea[])
-- index: primary key. A key that is there already is not returned: its request is a repeat. One that another
-- transaction is about to commit is waited for (lock_timeout).
INSERT INTO onthedot.idempotency_keys (key_hash, request_hash, status_code, answer)
SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::int2[], $4::bytea[])
    ON CONFLICT DO NOTHING
RETURNING key_hash
