-- Limits: how much may run, or begin, at the same time. What a limit counts is rows of limit_holders, written and deleted
-- with the leases that they stand for; there is no counter to be wrong.

ALTER TABLE onthedot.users
    ADD COLUMN rate_per_second double precision CHECK (rate_per_second > 0),
    ADD COLUMN rate_burst integer CHECK (rate_burst >= 1),
    ADD COLUMN limited boolean NOT NULL GENERATED ALWAYS AS (
        max_concurrent_jobs IS NOT NULL OR rate_per_second IS NOT NULL) STORED;
---
ALTER TABLE onthedot.queues
    ADD COLUMN max_concurrency integer CHECK (max_concurrency >= 1),
    ADD COLUMN rate_per_second double precision CHECK (rate_per_second > 0),
    ADD COLUMN rate_burst integer CHECK (rate_burst >= 1),
    ADD COLUMN limited boolean NOT NULL GENERATED ALWAYS AS (
        max_concurrency IS NOT NULL OR rate_per_second IS NOT NULL) STORED;
---
ALTER TABLE onthedot.tasks
    ADD COLUMN labels jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(labels) = 'object'),
    ADD COLUMN concurrency integer CHECK (concurrency >= 1),
    ADD COLUMN concurrency_key text,
    ADD COLUMN concurrency_limit integer CHECK (concurrency_limit >= 1),
    ADD COLUMN rate_per_second double precision CHECK (rate_per_second > 0),
    ADD COLUMN rate_burst integer CHECK (rate_burst >= 1),
    ADD COLUMN limited boolean NOT NULL GENERATED ALWAYS AS (
        concurrency IS NOT NULL OR concurrency_key IS NOT NULL OR rate_per_second IS NOT NULL
        OR cpu_cores > 0 OR memory_mb > 0 OR labels <> '{}') STORED;
---
ALTER TABLE onthedot.jobs
    ADD COLUMN concurrency_key text,
    ADD COLUMN concurrency_limit integer CHECK (concurrency_limit >= 1);
---
ALTER TABLE onthedot.workers
    ADD COLUMN cpu_cores double precision,
    ADD COLUMN memory_mb integer;
---
ALTER TABLE onthedot.executions
    ADD COLUMN limited boolean NOT NULL DEFAULT false,
    ADD COLUMN concurrency_key text,
    ADD COLUMN concurrency_limit integer CHECK (concurrency_limit >= 1),
    ADD COLUMN overlap text NOT NULL DEFAULT 'allow' CHECK (overlap IN ('allow', 'skip', 'queue', 'cancel_running'));
---
DROP INDEX onthedot.executions_ready;
---
CREATE INDEX executions_ready ON onthedot.executions (queue, priority, limited, due_at)
    WHERE status IN ('PENDING', 'RETRYING') AND NOT held AND worker_deaths < 2;
---
-- The lane is all that tells what limits an execution, its user apart: who looks at one row of a lane knows for all. From
-- lane to lane, so that nobody's million stands before another one's ten, nor what is limited before what is not.
-- In the index alone: a generated column would be computed at every update again (6 µs of the 21 that a claim takes).
CREATE FUNCTION onthedot.lane_of(limited boolean, task_id text, concurrency_key text, overlap text, job_id uuid)
RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    IF NOT limited THEN
        RETURN '';
    ELSIF overlap = 'allow' THEN
        RETURN concat_ws(E'\x1f', task_id, coalesce(concurrency_key, ''));
    END IF;
    RETURN concat_ws(E'\x1f', task_id, coalesce(concurrency_key, ''), job_id);
END $$;
---
COMMENT ON FUNCTION onthedot.lane_of(boolean, text, text, text, uuid) IS
    'Task, concurrency_key and (unless they may overlap) job: executions of a user in the same lane have the same limits';
---
REVOKE ALL ON FUNCTION onthedot.lane_of(boolean, text, text, text, uuid) FROM PUBLIC;
---
CREATE INDEX executions_lanes ON onthedot.executions
    (queue, priority, user_id, onthedot.lane_of(limited, task_id, concurrency_key, overlap, job_id) COLLATE "C", due_at)
    WHERE status IN ('PENDING', 'RETRYING') AND NOT held AND worker_deaths < 2;
---
CREATE TABLE onthedot.limit_holders (
    key          text COLLATE "C" NOT NULL,
    execution_id uuid NOT NULL,
    shard        smallint NOT NULL,
    lease_epoch  bigint NOT NULL,
    cpu_cores    double precision NOT NULL DEFAULT 0,
    memory_mb    integer NOT NULL DEFAULT 0,
    held_since   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (key, execution_id)
);
---
CREATE INDEX limit_holders_execution ON onthedot.limit_holders (execution_id);
---
CREATE TABLE onthedot.rate_buckets (
    key         text COLLATE "C" PRIMARY KEY,
    tokens      double precision NOT NULL,
    refilled_at timestamptz NOT NULL
);
---
-- Limits set a moment ago: executions that wait already, or are being created by transactions that began before, do not
-- know of them.
CREATE TABLE onthedot.new_limits (
    scope  text NOT NULL CHECK (scope IN ('user', 'queue', 'task')),
    name   text NOT NULL,
    set_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (scope, name)
);
---
CREATE FUNCTION onthedot.note_new_limit() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO onthedot.new_limits (scope, name)
    VALUES (TG_ARGV[0], to_jsonb(NEW) ->> TG_ARGV[1])
        ON CONFLICT (scope, name) DO UPDATE SET set_at = excluded.set_at;
    RETURN NULL;
END $$;
---
COMMENT ON FUNCTION onthedot.note_new_limit() IS 'Has waiting executions told of a limit that is new (app/maintenance/limits.py)';
---
REVOKE ALL ON FUNCTION onthedot.note_new_limit() FROM PUBLIC;
---
CREATE TRIGGER users_new_limit AFTER UPDATE ON onthedot.users FOR EACH ROW
    WHEN (NEW.limited AND NOT OLD.limited OR OLD.max_concurrent_jobs IS NULL AND NEW.max_concurrent_jobs IS NOT NULL)
    EXECUTE FUNCTION onthedot.note_new_limit('user', 'user_id');
---
CREATE TRIGGER queues_new_limit AFTER UPDATE ON onthedot.queues FOR EACH ROW
    WHEN (NEW.limited AND NOT OLD.limited OR OLD.max_concurrency IS NULL AND NEW.max_concurrency IS NOT NULL)
    EXECUTE FUNCTION onthedot.note_new_limit('queue', 'queue');
---
CREATE TRIGGER tasks_new_limit AFTER UPDATE ON onthedot.tasks FOR EACH ROW
    WHEN (NEW.limited AND NOT OLD.limited OR OLD.concurrency IS NULL AND NEW.concurrency IS NOT NULL)
    EXECUTE FUNCTION onthedot.note_new_limit('task', 'task_id');
---
-- Rendering is here and not in Python, because jobs are created by SQL, too, and a task's template may change.
CREATE FUNCTION onthedot.render_key(template text, parameters jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    longest CONSTANT integer := 200;
    key     text := template;
    part    text[];
BEGIN
    FOR part IN SELECT regexp_matches(template, '(\{\{\s*parameters\.([A-Za-z0-9_.-]+)\s*\}\})', 'g') LOOP
        key := replace(key, part[1], coalesce(parameters #>> string_to_array(part[2], '.'), ''));
    END LOOP;
    IF length(key) > longest THEN
        key := left(key, longest - 33) || ' ' || md5(key);
    END IF;
    RETURN key;
END $$;
---
COMMENT ON FUNCTION onthedot.render_key(text, jsonb) IS
    'A concurrency_key with {{parameters.name}} replaced by what stands there; nothing where nothing does. Of long ones a hash';
---
REVOKE ALL ON FUNCTION onthedot.render_key(text, jsonb) FROM PUBLIC;
---
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
        SELECT t.task_id, t.queue, t.priority, 1 + coalesce(t.max_retries, q.max_retries) AS max_attempts, o.user_id,
               CASE WHEN t.concurrency_key IS NOT NULL
                    THEN onthedot.render_key(t.concurrency_key, create_enqueued.parameters) END AS concurrency_key,
               t.concurrency_limit, t.limited OR q.limited OR coalesce(u.limited, false) AS limited
          FROM onthedot.tasks AS t
          JOIN onthedot.queues AS q ON q.queue = t.queue
         CROSS JOIN LATERAL (SELECT coalesce((SELECT n.user_id FROM onthedot.users AS n
                                               WHERE n.user_id = lower(session_user)), 'sql') AS user_id) AS o
          LEFT JOIN onthedot.users AS u ON u.user_id = o.user_id
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
            first_due_at, parameters, parameters_checked, max_attempts, limited, concurrency_key, concurrency_limit)
    SELECT new_shard, onthedot.uuid7(get_byte(uuid_send(new), 15)), new, user_id, task_id, queue, priority,
           'PENDING', coalesce(once_at, moment), greatest(once_at, moment), greatest(once_at, moment),
           create_enqueued.parameters, false, max_attempts, limited, concurrency_key, concurrency_limit
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
COMMENT ON TABLE onthedot.limit_holders IS
    'What counts against limits on what runs at once: one row for each limit that an execution under lease counts against';
---
COMMENT ON COLUMN onthedot.limit_holders.key IS
    'What is limited: user:ID, queue:NAME, task:ID, key:CONCURRENCY_KEY, job:ID (overlap), host:NAME (cores and memory)';
---
COMMENT ON COLUMN onthedot.limit_holders.execution_id IS 'What counts against it';
---
COMMENT ON COLUMN onthedot.limit_holders.shard IS 'Its shard';
---
COMMENT ON COLUMN onthedot.limit_holders.lease_epoch IS
    'The lease under which it counts: one that is over takes nothing away from the next one of the same execution';
---
COMMENT ON COLUMN onthedot.limit_holders.cpu_cores IS 'Cores it takes, of a host';
---
COMMENT ON COLUMN onthedot.limit_holders.memory_mb IS 'Memory it takes, in MiB, of a host';
---
COMMENT ON COLUMN onthedot.limit_holders.held_since IS 'When it was claimed';
---
COMMENT ON TABLE onthedot.rate_buckets IS 'Token buckets of rate limits: what may begin at once, as of refilled_at';
---
COMMENT ON COLUMN onthedot.rate_buckets.key IS 'What is limited: user:ID, queue:NAME, task:ID or key:CONCURRENCY_KEY';
---
COMMENT ON COLUMN onthedot.rate_buckets.tokens IS 'Starts it has left at refilled_at; it fills at the rate, up to the burst';
---
COMMENT ON COLUMN onthedot.rate_buckets.refilled_at IS 'When the tokens were counted';
---
COMMENT ON TABLE onthedot.new_limits IS
    'Limits set a moment ago, of which executions that wait already have yet to be told (app/maintenance/limits.py)';
---
COMMENT ON COLUMN onthedot.new_limits.scope IS 'Whose limit: of a user, a queue or a task';
---
COMMENT ON COLUMN onthedot.new_limits.name IS 'Its id';
---
COMMENT ON COLUMN onthedot.new_limits.set_at IS 'When it was set: a little later nobody can be creating an execution that does not know of it';
---
COMMENT ON COLUMN onthedot.users.rate_per_second IS 'How many executions may begin each second on average; null: any';
---
COMMENT ON COLUMN onthedot.users.rate_burst IS 'How many may begin at once after a rest; null: as many as a second brings, at least one';
---
COMMENT ON COLUMN onthedot.users.limited IS 'Whether anything limits what of theirs may run: their executions are claimed one by one, then';
---
COMMENT ON COLUMN onthedot.queues.max_concurrency IS 'How many of its executions may run at once, over all workers; null: any';
---
COMMENT ON COLUMN onthedot.queues.rate_per_second IS 'How many executions may begin each second on average; null: any';
---
COMMENT ON COLUMN onthedot.queues.rate_burst IS 'How many may begin at once after a rest; null: as many as a second brings, at least one';
---
COMMENT ON COLUMN onthedot.queues.limited IS 'Whether anything limits what of it may run';
---
COMMENT ON COLUMN onthedot.tasks.labels IS 'What a worker must offer to run it, as {"name": "value"}';
---
COMMENT ON COLUMN onthedot.tasks.concurrency IS 'How many of its executions may run at once, over all workers; null: any';
---
COMMENT ON COLUMN onthedot.tasks.concurrency_key IS
    'Of executions with the same key only concurrency_limit run at once; may hold {{parameters.name}}. A job''s own wins';
---
COMMENT ON COLUMN onthedot.tasks.concurrency_limit IS 'How many with the same concurrency_key may run at once; null: one';
---
COMMENT ON COLUMN onthedot.tasks.rate_per_second IS
    'How many executions may begin each second on average, of each concurrency_key where there is one; null: any';
---
COMMENT ON COLUMN onthedot.tasks.rate_burst IS 'How many may begin at once after a rest; null: as many as a second brings, at least one';
---
COMMENT ON COLUMN onthedot.tasks.limited IS 'Whether anything limits what of it may run where';
---
COMMENT ON COLUMN onthedot.jobs.concurrency_key IS
    'Of executions with the same key only concurrency_limit run at once; may hold {{parameters.name}}; null: the task''s';
---
COMMENT ON COLUMN onthedot.jobs.concurrency_limit IS 'How many with the same concurrency_key may run at once; null: the task''s, or one';
---
COMMENT ON COLUMN onthedot.workers.cpu_cores IS 'Cores of its host, or of its container, that work may take';
---
COMMENT ON COLUMN onthedot.workers.memory_mb IS 'Memory of its host, or of its container, that work may take, in MiB';
---
COMMENT ON COLUMN onthedot.executions.limited IS
    'Whether a limit may keep it from running: then it is claimed beside what else counts against that limit';
---
COMMENT ON COLUMN onthedot.executions.concurrency_key IS 'Its concurrency_key with its parameters in it; null: none';
---
COMMENT ON COLUMN onthedot.executions.concurrency_limit IS 'How many with the same key may run at once; null: one';
---
COMMENT ON COLUMN onthedot.executions.overlap IS 'What happens when it is due while another execution of its job is under way';
---
CREATE OR REPLACE TRIGGER audit_update AFTER UPDATE OF
    user_id, task_id, name, tags, schedule_type, expression, scheduled_time, every_seconds, timezone,
    timezone_requested, gap, fold, starts_at, ends_at, misfire, misfire_grace_seconds, overlap, parameters, queue,
    priority, max_retries, timeout_seconds, is_active, pause_reason, paused_until, expires_after_seconds, concurrency_key, concurrency_limit
    ON onthedot.jobs
    FOR EACH ROW EXECUTE FUNCTION onthedot.note_change('job', 'job_id');
---
CREATE OR REPLACE VIEW audit.jobs AS
SELECT j.job_id, j.name, j.user_id, j.task_id, t.name AS task_name, j.schedule_type, j.expression, j.scheduled_time,
       j.every_seconds, j.timezone, j.starts_at, j.ends_at, j.is_active, j.pause_reason, j.paused_until,
       (SELECT min(e.scheduled_time)
          FROM onthedot.executions AS e
         WHERE e.shard = j.shard AND e.job_id = j.job_id AND e.status IN ('BLOCKED', 'PENDING', 'SCHEDULED'))
           AS next_time,
       coalesce(j.queue, t.queue) AS queue, coalesce(j.priority, t.priority) AS priority,
       coalesce(j.max_retries, t.max_retries, q.max_retries) AS max_retries,
       coalesce(j.timeout_seconds, t.timeout_seconds) AS timeout_seconds, j.overlap, j.misfire, j.parameters, j.tags,
       j.batch_id, j.created_at, j.updated_at, j.version, j.shard, j.expires_after_seconds,
       j.concurrency_key, j.concurrency_limit
  FROM onthedot.jobs AS j
  LEFT JOIN onthedot.tasks AS t ON t.task_id = j.task_id
  LEFT JOIN onthedot.queues AS q ON q.queue = coalesce(j.queue, t.queue);
---
COMMENT ON COLUMN audit.jobs.concurrency_key IS
    'Of executions with the same key only concurrency_limit run at once; may hold {{parameters.name}}; null: the task''s';
---
COMMENT ON COLUMN audit.jobs.concurrency_limit IS 'How many with the same concurrency_key may run at once; null: the task''s, or one';
---
CREATE VIEW audit.limit_holders AS
SELECT h.key, h.execution_id, e.job_id, e.task_id, e.user_id, h.held_since, h.cpu_cores, h.memory_mb, e.status, e.worker_id
  FROM onthedot.limit_holders AS h
  LEFT JOIN onthedot.executions AS e ON e.shard = h.shard AND e.execution_id = h.execution_id;
---
COMMENT ON VIEW audit.limit_holders IS
    'What counts against limits on what runs at once: a row for each limit that an execution under way counts against';
---
COMMENT ON COLUMN audit.limit_holders.key IS 'What is limited: user:ID, queue:NAME, task:ID, key:CONCURRENCY_KEY, job:ID (overlap), host:NAME (cores and memory)';
---
COMMENT ON COLUMN audit.limit_holders.execution_id IS 'What counts against it';
---
COMMENT ON COLUMN audit.limit_holders.job_id IS 'Its job';
---
COMMENT ON COLUMN audit.limit_holders.task_id IS 'Its task';
---
COMMENT ON COLUMN audit.limit_holders.user_id IS 'Its owner';
---
COMMENT ON COLUMN audit.limit_holders.held_since IS 'When it was claimed';
---
COMMENT ON COLUMN audit.limit_holders.cpu_cores IS 'Cores it takes, of a host';
---
COMMENT ON COLUMN audit.limit_holders.memory_mb IS 'Memory it takes, in MiB, of a host';
---
COMMENT ON COLUMN audit.limit_holders.status IS 'Its status; null: its end is a moment ago';
---
COMMENT ON COLUMN audit.limit_holders.worker_id IS 'Who runs it';
---
SELECT onthedot.ensure_roles();
