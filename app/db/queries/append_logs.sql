-- append_logs: store captured log lines. A line is written once: a repeat after a lost reply changes nothing.
-- One element a line: $1 shards (int2[]), $2 execution_ids (uuid[]), $3 attempt_numbers (int4[]),
-- $4 sequences (int4[]), $5 times (timestamptz[]), $6 levels (text[]), $7 streams (text[]), $8 messages (text[])
INSERT INTO onthedot.execution_logs
       (shard, execution_id, attempt_number, sequence, time, level, stream, message)
SELECT * FROM unnest($1::int2[], $2::uuid[], $3::int4[], $4::int4[], $5::timestamptz[], $6::text[], $7::text[],
                     $8::text[])
    ON CONFLICT DO NOTHING
