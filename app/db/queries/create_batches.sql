-- create_batches: record jobs that are created together.
-- One element a batch: $1 batch_ids (uuid[]), $2 user_ids (text[]), $3 totals (int4[]), $4 created_at (timestamptz[])
INSERT INTO onthedot.batches (batch_id, user_id, total, created_at)
SELECT * FROM unnest($1::uuid[], $2::text[], $3::int4[], $4::timestamptz[])
