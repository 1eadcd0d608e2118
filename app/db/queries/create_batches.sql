-- create_batches: record jobs that are created together.
-- One element a batch: $1 batch_ids (uuid[]), $2 user_ids (text[]), $3 totals (int4[]), $4 created_at (timestamptz[]),
-- $5 first_execution_ids (uuid[]), $6 last_execution_ids (uuid[])
INSERT INTO onthedot.batches (batch_id, user_id, total, created_at, first_execution_id, last_execution_id)
SELECT * FROM unnest($1::uuid[], $2::text[], $3::int4[], $4::timestamptz[], $5::uuid[], $6::uuid[])
