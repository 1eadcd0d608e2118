-- max_jobs_per_hour (docs/limits.md): one row an hour of a user who has the quota, locked in the creating transaction.

CREATE TABLE onthedot.hourly_counts (
    user_id text NOT NULL,
    hour    timestamptz NOT NULL CHECK (hour = date_trunc('hour', hour, 'UTC')),
    created integer NOT NULL CHECK (created >= 0),
    PRIMARY KEY (user_id, hour)
);
---
COMMENT ON TABLE onthedot.hourly_counts IS
    'Executions created in a UTC clock hour, of users who have max_jobs_per_hour';
---
COMMENT ON COLUMN onthedot.hourly_counts.user_id IS 'Whose';
---
COMMENT ON COLUMN onthedot.hourly_counts.hour IS 'Its beginning. Instants of schedules count in the hour in which they lie';
---
COMMENT ON COLUMN onthedot.hourly_counts.created IS 'How many; what was planned and is taken back is taken off';
---
-- Whoever sets a quota locks jobs against who creates (db/job_creation.py), to count what there is: so who creates holds
-- that table before it looks for a quota. Each statement of a function sees what was committed before it.
CREATE FUNCTION onthedot.count_created(
    user_id text, OUT quota integer, OUT hour timestamptz, OUT asked_at timestamptz
)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    LOCK TABLE ONLY onthedot.jobs IN ROW EXCLUSIVE MODE;
    SELECT u.max_jobs_per_hour INTO quota FROM onthedot.users AS u WHERE u.user_id = count_created.user_id;
    IF quota IS NULL THEN
        RETURN;
    END IF;
    asked_at := clock_timestamp();
    hour := date_trunc('hour', asked_at, 'UTC');
    INSERT INTO onthedot.hourly_counts AS h (user_id, hour, created)
    SELECT count_created.user_id, count_created.hour, 1 WHERE quota > 0
        ON CONFLICT ON CONSTRAINT hourly_counts_pkey DO UPDATE SET created = h.created + 1
     WHERE h.created < count_created.quota;
    IF FOUND THEN
        quota := NULL;
    END IF;
END $$;
---
REVOKE ALL ON FUNCTION onthedot.count_created(text) FROM PUBLIC;
---
COMMENT ON FUNCTION onthedot.count_created(text) IS
    'Counts one execution that is created now against its user''s max_jobs_per_hour. quota: null, or the quota that is used up';
---
-- As before; and what is created counts.
CREATE OR REPLACE FUNCTION onthedot.create_enqueued(job_id uuid, task_id text, parameters jsonb, run_at timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    new       CONSTANT uuid := job_id;
    moment    CONSTANT timestamptz := clock_timestamp();
    once_at   CONSTANT timestamptz := nullif(run_at, now());
    new_shard CONSTANT smallint := onthedot.shard_of(job_id);
    owner     text;
    refused   record;
BEGIN
    WITH wanted AS MATERIALIZED (
        SELECT t.task_id, t.queue, t.priority, 1 + coalesce(t.max_retries, q.max_retries) AS max_attempts,
               coalesce((SELECT u.user_id FROM onthedot.users AS u WHERE u.user_id = lower(session_user)), 'sql')
               AS user_id
          FROM onthedot.tasks AS t JOIN onthedot.queues AS q ON q.queue = t.queue
         WHERE t.task_id = create_enqueued.task_id
    ), made AS (
        INSERT INTO onthedot.jobs
               (shard, job_id, user_id, task_id, schedule_type, scheduled_time, parameters, parameters_checked,
                materialized_until, created_at, updated_at)
        SELECT new_shard, new, user_id, task_id,
               CASE WHEN once_at IS NULL THEN 'IMMEDIATE' ELSE 'ONCE' END, once_at, create_enqueued.parameters, false,
               moment, moment, moment
          FROM wanted
    )
    INSERT INTO onthedot.executions AS e
           (shard, execution_id, job_id, user_id, task_id, queue, priority, status, scheduled_time, due_at,
            first_due_at, parameters, parameters_checked, max_attempts)
    SELECT new_shard, onthedot.uuid7(get_byte(uuid_send(new), 15)), new, user_id, task_id, queue, priority,
           'PENDING', coalesce(once_at, moment), greatest(once_at, moment), greatest(once_at, moment),
           create_enqueued.parameters, false, max_attempts
      FROM wanted
    RETURNING e.user_id INTO owner;
    IF NOT FOUND THEN
        RAISE 'there is no task %', quote_nullable(left(create_enqueued.task_id, 128))
            USING ERRCODE = 'no_data_found', HINT = 'Create the task first: POST /api/v1/tasks';
    END IF;
    SELECT * INTO refused FROM onthedot.count_created(owner);
    IF refused.quota IS NOT NULL THEN
        RAISE 'the user % may create % executions an hour, and this would be more', owner, refused.quota
            USING ERRCODE = 'configuration_limit_exceeded',
                  HINT = format('Try again from %s on, or have an admin raise job_quotas.max_jobs_per_hour',
                                to_char((refused.hour + interval '1 hour') AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI"Z"'));
    END IF;
END $$;
---
INSERT INTO onthedot.hourly_counts (user_id, hour, created)
SELECT e.user_id, date_trunc('hour', greatest(e.scheduled_time, now()), 'UTC'), count(*)
  FROM onthedot.executions AS e
  JOIN onthedot.users AS u ON u.user_id = e.user_id AND u.max_jobs_per_hour IS NOT NULL
  JOIN onthedot.jobs AS j ON j.shard = e.shard AND j.job_id = e.job_id
 WHERE e.run_key = '' AND j.schedule_type IN ('RECURRING', 'INTERVAL')
   AND e.scheduled_time >= date_trunc('hour', now(), 'UTC')
 GROUP BY 1, 2;
---
SELECT onthedot.ensure_roles();
