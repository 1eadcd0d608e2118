-- recount_hours: count what this hour has created for a user who gets a quota, and what is planned for it and later ones.
-- $1 user_id (text), $2 the least id that something created in this hour may have (uuid)
-- index: executions_user and history_user (user_id, …): all that waits, and what has ended lately; executions_lease, all that
-- is leased. It is rare, and runs while nobody else creates anything (db/job_creation.py).
-- Instants of schedules count in the hour in which they lie, everything else in the one in which it was asked for, which
-- its id tells.
WITH made AS MATERIALIZED (
    SELECT shard, job_id, execution_id, scheduled_time, run_key
      FROM onthedot.executions
     WHERE user_id = $1 AND status IN ('BLOCKED', 'PENDING', 'RETRYING')
    UNION ALL
    SELECT shard, job_id, execution_id, scheduled_time, run_key
      FROM onthedot.executions
     WHERE user_id = $1 AND status IN ('SCHEDULED', 'RUNNING')
    UNION ALL
    SELECT shard, job_id, execution_id, scheduled_time, run_key
      FROM onthedot.execution_history
     WHERE user_id = $1 AND completed_at >= date_trunc('hour', now(), 'UTC') - interval '1 hour'
), placed AS (
    SELECT CASE WHEN m.run_key = '' AND j.schedule_type IN ('RECURRING', 'INTERVAL')
                THEN date_trunc('hour', m.scheduled_time, 'UTC')
                WHEN m.execution_id >= $2::uuid THEN date_trunc('hour', now(), 'UTC') END AS hour
      FROM made AS m
      LEFT JOIN onthedot.jobs AS j ON j.shard = m.shard AND j.job_id = m.job_id
)
INSERT INTO onthedot.hourly_counts AS h (user_id, hour, created)
SELECT $1::text, hour, count(*) FROM placed WHERE hour >= date_trunc('hour', now(), 'UTC') GROUP BY hour
    ON CONFLICT (user_id, hour) DO UPDATE SET created = excluded.created
