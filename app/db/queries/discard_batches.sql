-- discard_batches: take back batches created in this very transaction.
-- $1 batch_ids (uuid[])
-- index: primary key
DELETE FROM onthedot.batches WHERE batch_id = ANY ($1::uuid[])
