-- explain_holders: who counts against limits, the longest first.
-- $1 keys (text[]), $2 how many of each (int4)
-- index: primary key; what counts against one limit is no more than what runs
SELECT k.key, h.execution_id, h.held_since
  FROM unnest($1::text[]) AS k (key)
 CROSS JOIN LATERAL (
       SELECT execution_id, held_since
         FROM onthedot.limit_holders
        WHERE key = k.key
        ORDER BY held_since, execution_id
        LIMIT $2::int4) AS h
