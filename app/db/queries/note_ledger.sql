-- note_ledger: record instants of jobs of one shard that became no execution, as ranges.
-- $1 shard (int2), and one element a range: $2 job_ids (uuid[]), $3 first_time (timestamptz[]),
-- $4 last_time (timestamptz[]), $5 occurrences (int8[]), $6 dispositions (text[]), $7 causes (text[])
INSERT INTO onthedot.ledger_ranges (shard, job_id, first_time, last_time, occurrences, disposition, cause)
SELECT $1::int2, x.* FROM unnest($2::uuid[], $3::timestamptz[], $4::timestamptz[], $5::int8[], $6::text[], $7::text[])
       AS x (job_id, first_time, last_time, occurrences, disposition, cause)
    ON CONFLICT DO NOTHING
