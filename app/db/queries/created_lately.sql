-- created_lately: how many executions were created after an instant, counted to a most, and the oldest one counted.
-- $1 the least id of that instant (uuid), $2 how long ago it is in seconds (float8), $3 most to count (int4)
-- index: primary keys: ids are UUIDv7 and sort by time. An execution made since has not ended before: the history's
-- older days are left out.
SELECT count(*)::int4 AS created, (array_agg(execution_id ORDER BY execution_id))[1] AS oldest_id
  FROM (SELECT execution_id
          FROM (SELECT execution_id FROM onthedot.executions WHERE execution_id > $1::uuid
                UNION ALL
                SELECT execution_id FROM onthedot.execution_history
                 WHERE execution_id > $1::uuid AND completed_at > now() - make_interval(secs => $2::float8 + 60)
               ) AS made
         ORDER BY execution_id DESC
         LIMIT $3::int4) AS newest
