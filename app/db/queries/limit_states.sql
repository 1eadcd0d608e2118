-- limit_states: what counts against each limit, and what its bucket held when it was last counted. Only after lock_limits.sql
-- and in a statement of its own: a snapshot from before the lock would miss what its last holder has written.
-- $1 keys (text[])
-- index: primary keys
-- moment: one for all, at which buckets are filled up; what is left in them is written as of then (fill_buckets.sql).
-- holder: of a limit that allows one, who it is; a job's stays with an execution that is to be tried again.
SELECT k.key, h.holders, h.cpu_cores, h.memory_mb,
       CASE WHEN h.holders = 1
            THEN (SELECT execution_id FROM onthedot.limit_holders WHERE key = k.key LIMIT 1) END AS holder,
       b.tokens, extract(epoch FROM m.moment - b.refilled_at)::float8 AS seconds, m.moment
  FROM (SELECT clock_timestamp() AS moment OFFSET 0) AS m
 CROSS JOIN unnest($1::text[]) AS k (key)
 CROSS JOIN LATERAL (
       SELECT count(*)::int4 AS holders, coalesce(sum(cpu_cores), 0)::float8 AS cpu_cores,
              coalesce(sum(memory_mb), 0)::int4 AS memory_mb
         FROM onthedot.limit_holders
        WHERE key = k.key) AS h
  LEFT JOIN onthedot.rate_buckets AS b ON b.key = k.key
