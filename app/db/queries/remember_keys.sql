-- remember_keys: write down requests under an Idempotency-Key with their answers, in the transaction of their effect.
-- One element a request: $1 key_hashes (bytea[]), $2 request_hashes (bytea[]), $3 status codes (int2[]), $4 headers
-- (text[], JSON), $5 answers (bytea[]); $6 how long to wait for other transactions (text, such as 5000ms)
-- index: primary key. Returns the keys written; one that was there already belongs to a repeat. A key that another
-- transaction is about to commit is waited for, with a lock_timeout that holds for this statement only.
WITH usual AS MATERIALIZED (
    SELECT current_setting('lock_timeout') AS lock_timeout, set_config('lock_timeout', $6::text, true)
), kept AS (
    INSERT INTO onthedot.idempotency_keys (key_hash, request_hash, status_code, headers, answer)
    SELECT key_hash, request_hash, status_code, headers::jsonb, answer
      FROM unnest($1::bytea[], $2::bytea[], $3::int2[], $4::text[], $5::bytea[])
           AS w (key_hash, request_hash, status_code, headers, answer)
     WHERE (SELECT lock_timeout FROM usual) IS NOT NULL
        ON CONFLICT DO NOTHING
    RETURNING key_hash
), written AS MATERIALIZED (
    SELECT coalesce(array_agg(key_hash), '{}') AS key_hashes FROM kept
)
SELECT key_hashes, set_config('lock_timeout', (SELECT lock_timeout FROM usual), true) FROM written
