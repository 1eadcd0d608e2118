-- house_health: how far the planning of schedules is behind, and how long the oldest transaction has been open.
-- index: jobs_materialize, its first entry in each partition
SELECT extract(epoch FROM now() - (SELECT min(materialize_at) FROM onthedot.jobs WHERE materialize_at < now()))::float8
           AS materializer_behind_seconds,
       (SELECT max(extract(epoch FROM now() - xact_start))::float8
          FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()) AS oldest_transaction_seconds,
       extract(epoch FROM now() - (SELECT rolled_until FROM onthedot.rollup_state))::float8 AS rollups_behind_seconds,
       current_setting('server_version_num')::int4 / 10000 AS postgresql
