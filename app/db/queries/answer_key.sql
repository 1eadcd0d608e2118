-- answer_key: write down the answer to a request whose key this very transaction has remembered.
-- $1 key_hash (bytea), $2 status code (int2), $3 headers (text, JSON), $4 answer (bytea)
-- index: primary key
UPDATE onthedot.idempotency_keys SET status_code = $2, headers = $3::text::jsonb, answer = $4 WHERE key_hash = $1
