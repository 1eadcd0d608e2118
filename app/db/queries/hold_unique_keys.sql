-- hold_unique_keys: give keys that this transaction has locked to new jobs.
-- One element a key: $1 key_hashes (bytea[]), $2 shards (int2[]), $3 job_ids (uuid[]), $4 until when (timestamptz[]; null: as
-- long as an execution of it is live)
-- index: primary key
UPDATE onthedot.unique_keys AS k
   SET shard = x.shard, job_id = x.job_id, expires_at = x.expires_at
  FROM unnest($1::bytea[], $2::int2[], $3::uuid[], $4::timestamptz[]) AS x (key_hash, shard, job_id, expires_at)
 WHERE k.key_hash = x.key_hash
