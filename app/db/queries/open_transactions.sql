-- open_transactions: which transactions are open on this server, and on which tables of ours they keep locks that are
-- in somebody's way; of the oldest, sessions that we may not look into last.
-- index: none; reads what PostgreSQL has in memory. Anybody may read pg_locks, but since when a session of another user
-- has been in its transaction only pg_monitor may know. A prepared transaction has no session.
-- What ANALYZE and VACUUM take, and what reading takes, is in nobody's way here.
SELECT l.virtualtransaction AS transaction, l.pid, a.application_name AS application, a.usename AS "user",
       a.datname AS database,
       extract(epoch FROM clock_timestamp() - a.xact_start)::float8 AS seconds,
       coalesce(array_agg(DISTINCT t.name) FILTER (WHERE t.name IS NOT NULL), '{}') AS tables
  FROM pg_locks AS l
  LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
  LEFT JOIN LATERAL (
       SELECT r.relname::text AS name
         FROM pg_class AS c JOIN pg_class AS r ON r.oid = coalesce(pg_partition_root(c.oid), c.oid)
        WHERE c.oid = l.relation AND c.relnamespace = 'onthedot'::regnamespace AND c.relkind IN ('r', 'p')
          AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
          AND l.granted AND l.mode NOT IN ('AccessShareLock', 'ShareUpdateExclusiveLock')) AS t ON true
 WHERE l.pid IS DISTINCT FROM pg_backend_pid() AND l.virtualtransaction IS NOT NULL
 GROUP BY l.virtualtransaction, l.pid, a.application_name, a.usename, a.datname, a.xact_start
 ORDER BY a.xact_start NULLS LAST
