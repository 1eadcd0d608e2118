-- count_hours: count what was created in hours whose counters this transaction has locked; below zero: taken back.
-- One element an hour: $1 user_ids (text[]), $2 hours (timestamptz[]), $3 how many more (int4[])
-- index: primary key
UPDATE onthedot.hourly_counts AS h
   SET created = greatest(0, h.created + x.more)
  FROM unnest($1::text[], $2::timestamptz[], $3::int4[]) AS x (user_id, hour, more)
 WHERE h.user_id = x.user_id AND h.hour = x.hour
