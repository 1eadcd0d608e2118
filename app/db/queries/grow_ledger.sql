-- grow_ledger: add instants to ranges of the ledger that stand there for the same cause; return those that found one.
-- $1 shard (int2), and one element a range: $2 job_ids (uuid[]), $3 first_time (timestamptz[]), $4 last_time
-- (timestamptz[]), $5 occurrences (int8[]), $6 dispositions (text[]), $7 causes (text[]), $8 earliest first_time of a range
-- to add to (timestamptz[])
-- index: primary key
UPDATE onthedot.ledger_ranges AS l
   SET last_time = greatest(l.last_time, x.last_time), occurrences = l.occurrences + x.occurrences
  FROM unnest($2::uuid[], $3::timestamptz[], $4::timestamptz[], $5::int8[], $6::text[], $7::text[], $8::timestamptz[])
       AS x (job_id, first_time, last_time, occurrences, disposition, cause, since)
 WHERE l.shard = $1 AND l.job_id = x.job_id AND l.disposition = x.disposition AND l.cause = x.cause
   AND l.first_time >= x.since AND l.first_time <= x.first_time
RETURNING x.job_id, x.first_time
