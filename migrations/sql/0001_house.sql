-- The house: shards, tasks, jobs, executions and what stands around them.
-- Statements are separated by lines of dashes. PostgreSQL 15 to 18.

CREATE SCHEMA IF NOT EXISTS onthedot;
---
COMMENT ON SCHEMA onthedot IS 'onthedot: tables, and the functions that SQL producers call';
---
CREATE SCHEMA IF NOT EXISTS audit;
---
COMMENT ON SCHEMA audit IS 'onthedot: stable views for people, readable by the role onthedot_auditor';
---
CREATE FUNCTION onthedot.shard_of(id uuid) RETURNS smallint
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT AS $$
BEGIN
    RETURN (ARRAY[298,455,115,290,292,96,844,65,108,415,336,574,752,41,80,289]::smallint[])
           [get_byte(uuid_send(id), 15) % 16 + 1];
END $$;
---
COMMENT ON FUNCTION onthedot.shard_of(uuid) IS
    'The shard of a job''s or an execution''s id: one of 16 values, picked by the id''s last byte modulo 16';
---
CREATE TABLE onthedot.users (
    user_id                  text PRIMARY KEY CHECK (user_id ~ '^[a-z0-9][a-z0-9_.@-]{0,127}$'),
    name                     text NOT NULL,
    email                    text,
    role                     text NOT NULL CHECK (role IN ('admin', 'operator', 'viewer')),
    notification_preferences jsonb NOT NULL DEFAULT '{}',
    max_concurrent_jobs      integer CHECK (max_concurrent_jobs > 0),
    max_jobs_per_hour        integer CHECK (max_jobs_per_hour >= 0),
    version                  integer NOT NULL DEFAULT 1,
    created_at               timestamptz NOT NULL DEFAULT now(),
    updated_at               timestamptz NOT NULL DEFAULT now()
);
---
CREATE TABLE onthedot.api_keys (
    key_id       uuid PRIMARY KEY,
    user_id      text NOT NULL REFERENCES onthedot.users ON DELETE CASCADE,
    name         text NOT NULL,
    prefix       text NOT NULL,
    key_hash     bytea NOT NULL UNIQUE CHECK (length(key_hash) = 32),
    created_at   timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz,
    last_used_at timestamptz
);
---
CREATE INDEX api_keys_user ON onthedot.api_keys (user_id);
---
CREATE TABLE onthedot.login_tokens (
    token_hash bytea PRIMARY KEY CHECK (length(token_hash) = 32),
    user_id    text NOT NULL REFERENCES onthedot.users ON DELETE CASCADE,
    expires_at timestamptz NOT NULL
);
---
CREATE TABLE onthedot.sessions (
    session_hash bytea PRIMARY KEY CHECK (length(session_hash) = 32),
    user_id      text NOT NULL REFERENCES onthedot.users ON DELETE CASCADE,
    created_at   timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz NOT NULL
);
---
CREATE TABLE onthedot.queues (
    queue          text PRIMARY KEY CHECK (queue ~ '^[a-z0-9][a-z0-9_.-]{0,62}$'),
    priority       smallint NOT NULL DEFAULT 2 CHECK (priority BETWEEN 0 AND 3),
    max_delay_ms   integer CHECK (max_delay_ms > 0),
    lease_seconds  double precision NOT NULL DEFAULT 600 CHECK (lease_seconds >= 1),
    max_retries    integer NOT NULL DEFAULT 3 CHECK (max_retries BETWEEN 0 AND 1000),
    batch_size     integer NOT NULL DEFAULT 100 CHECK (batch_size BETWEEN 1 AND 1000),
    durability     text NOT NULL DEFAULT 'strong' CHECK (durability IN ('strong', 'relaxed')),
    reserved_slots integer NOT NULL DEFAULT 0 CHECK (reserved_slots >= 0),
    interruptible  boolean NOT NULL DEFAULT false,
    paused_at      timestamptz,
    paused_by      text,
    paused_reason  text,
    paused_until   timestamptz,
    version        integer NOT NULL DEFAULT 1,
    created_at     timestamptz NOT NULL DEFAULT now(),
    updated_at     timestamptz NOT NULL DEFAULT now(),
    CHECK (paused_at IS NOT NULL OR (paused_by IS NULL AND paused_reason IS NULL AND paused_until IS NULL))
);
---
INSERT INTO onthedot.queues
    (queue, priority, max_delay_ms, lease_seconds, max_retries, batch_size, durability, reserved_slots, interruptible)
VALUES ('critical',      0, 100,  180, 10, 100, 'strong',  4, false),
       ('transactional', 1, NULL, 300, 5,  100, 'strong',  0, false),
       ('general',       2, NULL, 600, 3,  500, 'strong',  0, false),
       ('bulk',          3, NULL, 300, 3,  500, 'relaxed', 0, false),
       ('maintenance',   3, NULL, 600, 2,  500, 'strong',  0, true);
---
CREATE SEQUENCE onthedot.task_revisions;
---
CREATE TABLE onthedot.tasks (
    task_id                 text PRIMARY KEY CHECK (task_id ~ '^[a-z0-9][a-z0-9_.-]{0,127}$'),
    name                    text NOT NULL,
    description             text NOT NULL DEFAULT '',
    execution_handler       text NOT NULL,
    parameter_schema        jsonb NOT NULL DEFAULT '{}',
    cpu_cores               double precision NOT NULL DEFAULT 0 CHECK (cpu_cores >= 0),
    memory_mb               integer NOT NULL DEFAULT 0 CHECK (memory_mb >= 0),
    timeout_seconds         double precision NOT NULL DEFAULT 3600 CHECK (timeout_seconds > 0),
    retry_policy            text NOT NULL DEFAULT 'exponential'
                            CHECK (retry_policy IN ('exponential', 'linear', 'fixed')),
    max_retries             integer CHECK (max_retries BETWEEN 0 AND 1000),
    retry_delay_seconds     double precision NOT NULL DEFAULT 1 CHECK (retry_delay_seconds >= 0),
    retry_max_delay_seconds double precision NOT NULL DEFAULT 3600 CHECK (retry_max_delay_seconds >= 0),
    failure_rules           jsonb NOT NULL DEFAULT '[]' CHECK (jsonb_typeof(failure_rules) = 'array'),
    queue                   text NOT NULL DEFAULT 'general' REFERENCES onthedot.queues,
    priority                smallint NOT NULL DEFAULT 2 CHECK (priority BETWEEN 0 AND 3),
    created_by              text NOT NULL,
    created_at              timestamptz NOT NULL DEFAULT now(),
    updated_at              timestamptz NOT NULL DEFAULT now(),
    version                 integer NOT NULL DEFAULT 1,
    revision                bigint NOT NULL DEFAULT 0
);
---
CREATE FUNCTION onthedot.revise_task() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.revision := nextval('onthedot.task_revisions');
    IF TG_OP = 'UPDATE' THEN
        NEW.version := OLD.version + 1;
        NEW.updated_at := now();
    END IF;
    RETURN NEW;
END $$;
---
COMMENT ON FUNCTION onthedot.revise_task() IS
    'Whoever writes a task, by whatever way, raises version and revision: caches live by them';
---
CREATE TRIGGER tasks_revise BEFORE INSERT OR UPDATE ON onthedot.tasks
    FOR EACH ROW EXECUTE FUNCTION onthedot.revise_task();
---
CREATE TABLE onthedot.zone_aliases (
    alias text PRIMARY KEY,
    zone  text NOT NULL
);
---
INSERT INTO onthedot.zone_aliases VALUES ('America/Cupertino', 'America/Los_Angeles');
---
CREATE TABLE onthedot.jobs (
    shard                 smallint NOT NULL,
    job_id                uuid NOT NULL,
    user_id               text NOT NULL,
    task_id               text NOT NULL,
    name                  text,
    tags                  text[] NOT NULL DEFAULT '{}',
    schedule_type         text NOT NULL CHECK (schedule_type IN ('IMMEDIATE', 'ONCE', 'RECURRING', 'INTERVAL')),
    expression            text,
    scheduled_time        timestamptz,
    every_seconds         double precision CHECK (every_seconds >= 1),
    timezone              text NOT NULL DEFAULT 'UTC',
    timezone_requested    text NOT NULL DEFAULT 'UTC',
    gap                   text NOT NULL DEFAULT 'run_after_gap' CHECK (gap IN ('run_after_gap', 'skip')),
    fold                  text NOT NULL DEFAULT 'first' CHECK (fold IN ('first', 'second', 'both')),
    starts_at             timestamptz,
    ends_at               timestamptz,
    misfire               text NOT NULL DEFAULT 'run_once' CHECK (misfire IN ('skip', 'run_once', 'run_all')),
    misfire_grace_seconds double precision NOT NULL DEFAULT 60 CHECK (misfire_grace_seconds >= 0),
    overlap               text NOT NULL DEFAULT 'allow'
                          CHECK (overlap IN ('allow', 'skip', 'queue', 'cancel_running')),
    parameters            jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(parameters) = 'object'),
    queue                 text,
    priority              smallint CHECK (priority BETWEEN 0 AND 3),
    max_retries           integer CHECK (max_retries BETWEEN 0 AND 1000),
    timeout_seconds       double precision CHECK (timeout_seconds > 0),
    batch_id              uuid,
    is_active             boolean NOT NULL DEFAULT true,
    pause_reason          text,
    paused_until          timestamptz,
    materialized_until    timestamptz NOT NULL,
    materialize_at        timestamptz,
    version               integer NOT NULL DEFAULT 1,
    created_at            timestamptz NOT NULL DEFAULT now(),
    updated_at            timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (job_id, shard),
    CONSTRAINT jobs_shard_is_the_ids CHECK (
        shard = (ARRAY[298,455,115,290,292,96,844,65,108,415,336,574,752,41,80,289]::smallint[])
                [get_byte(uuid_send(job_id), 15) % 16 + 1]),
    CONSTRAINT jobs_schedule_is_whole CHECK (
        CASE schedule_type
            WHEN 'IMMEDIATE' THEN scheduled_time IS NULL AND expression IS NULL AND every_seconds IS NULL
            WHEN 'ONCE'      THEN scheduled_time IS NOT NULL AND expression IS NULL AND every_seconds IS NULL
            WHEN 'RECURRING' THEN expression IS NOT NULL AND every_seconds IS NULL AND scheduled_time IS NULL
            WHEN 'INTERVAL'  THEN every_seconds IS NOT NULL AND starts_at IS NOT NULL
                                  AND expression IS NULL AND scheduled_time IS NULL
        END),
    CONSTRAINT jobs_only_recurring_ones_materialise CHECK (
        materialize_at IS NULL OR (is_active AND schedule_type IN ('RECURRING', 'INTERVAL'))),
    CONSTRAINT jobs_only_paused_ones_have_a_reason CHECK (
        NOT is_active OR (pause_reason IS NULL AND paused_until IS NULL))
) PARTITION BY HASH (shard);
---
CREATE INDEX jobs_materialize ON onthedot.jobs (materialize_at) WHERE materialize_at IS NOT NULL;
---
CREATE INDEX jobs_user ON onthedot.jobs (user_id, created_at, job_id);
---
CREATE INDEX jobs_task ON onthedot.jobs (task_id, created_at, job_id);
---
CREATE INDEX jobs_created ON onthedot.jobs (created_at, job_id);
---
-- Those that repeat are few among the many that run once, and are what people look for.
CREATE INDEX jobs_repeating ON onthedot.jobs (created_at, job_id) WHERE schedule_type IN ('RECURRING', 'INTERVAL');
---
CREATE INDEX jobs_paused ON onthedot.jobs (created_at, job_id) WHERE NOT is_active;
---
CREATE TABLE onthedot.batches (
    batch_id   uuid PRIMARY KEY,
    user_id    text NOT NULL,
    total      integer NOT NULL CHECK (total > 0),
    created_at timestamptz NOT NULL DEFAULT now()
);
---
CREATE TABLE onthedot.executions (
    shard            smallint NOT NULL,
    execution_id     uuid NOT NULL,
    job_id           uuid NOT NULL,
    user_id          text NOT NULL,
    task_id          text NOT NULL,
    queue            text NOT NULL,
    priority         smallint NOT NULL CHECK (priority BETWEEN 0 AND 3),
    status           text NOT NULL CHECK (status IN ('BLOCKED', 'PENDING', 'SCHEDULED', 'RUNNING', 'RETRYING')),
    held             boolean NOT NULL DEFAULT false,
    trigger          text NOT NULL DEFAULT 'schedule'
                     CHECK (trigger IN ('schedule', 'manual', 'backfill', 'retry', 'redrive', 'workflow')),
    run_key          text NOT NULL DEFAULT '',
    retried_from     uuid,
    scheduled_time   timestamptz NOT NULL,
    due_at           timestamptz NOT NULL,
    first_due_at     timestamptz NOT NULL,
    parameters       jsonb NOT NULL DEFAULT '{}',
    timeout_seconds  double precision CHECK (timeout_seconds > 0),
    max_attempts     integer NOT NULL CHECK (max_attempts >= 1),
    attempt_number   integer NOT NULL DEFAULT 0 CHECK (attempt_number >= 0),
    lease_epoch      bigint NOT NULL DEFAULT 0 CHECK (lease_epoch >= 0),
    worker_id        uuid,
    lease_expires_at timestamptz,
    claimed_at       timestamptz,
    started_at       timestamptz,
    lateness_ms      double precision,
    error            jsonb,
    batch_id         uuid,
    cancel_requested_at timestamptz,
    PRIMARY KEY (execution_id, shard),
    CONSTRAINT executions_one_per_instant UNIQUE (job_id, scheduled_time, run_key, shard),
    CONSTRAINT executions_shard_is_the_ids CHECK (
        shard = (ARRAY[298,455,115,290,292,96,844,65,108,415,336,574,752,41,80,289]::smallint[])
                [get_byte(uuid_send(job_id), 15) % 16 + 1]
        AND get_byte(uuid_send(execution_id), 15) = get_byte(uuid_send(job_id), 15)),
    CONSTRAINT executions_leased_or_not CHECK (
        CASE WHEN status IN ('SCHEDULED', 'RUNNING')
             THEN worker_id IS NOT NULL AND lease_expires_at IS NOT NULL AND claimed_at IS NOT NULL
                  AND lease_epoch > 0 AND NOT held
             ELSE worker_id IS NULL AND lease_expires_at IS NULL AND claimed_at IS NULL
        END),
    CONSTRAINT executions_attempts_fit_the_status CHECK (
        CASE status WHEN 'RUNNING' THEN attempt_number >= 1
                    WHEN 'RETRYING' THEN attempt_number >= 1
                    WHEN 'BLOCKED' THEN attempt_number = 0
                    ELSE true END)
) PARTITION BY HASH (shard);
---
CREATE INDEX executions_ready ON onthedot.executions (queue, priority, due_at)
    WHERE status IN ('PENDING', 'RETRYING') AND NOT held;
---
CREATE INDEX executions_lease ON onthedot.executions (lease_expires_at)
    WHERE status IN ('SCHEDULED', 'RUNNING');
---
CREATE INDEX executions_cancelling ON onthedot.executions (worker_id) WHERE cancel_requested_at IS NOT NULL;
---
CREATE INDEX executions_batch ON onthedot.executions (batch_id) WHERE batch_id IS NOT NULL;
---
CREATE INDEX executions_newest ON onthedot.executions (scheduled_time, execution_id);
---
-- Few among the many that wait; what waits for its first attempt is found by executions_newest, what runs by its lease.
CREATE INDEX executions_retrying ON onthedot.executions (scheduled_time, execution_id) WHERE status = 'RETRYING';
---
CREATE INDEX executions_user ON onthedot.executions (user_id, scheduled_time, execution_id);
---
CREATE TABLE onthedot.execution_history (
    shard            smallint NOT NULL,
    execution_id     uuid NOT NULL,
    job_id           uuid NOT NULL,
    user_id          text NOT NULL,
    task_id          text NOT NULL,
    queue            text NOT NULL,
    priority         smallint NOT NULL,
    status           text NOT NULL CHECK (status IN ('COMPLETED', 'FAILED', 'CANCELLED', 'SKIPPED')),
    disposition      text NOT NULL
                     CHECK (disposition IN ('ran', 'late', 'skipped_overlap', 'skipped_misfire', 'coalesced',
                                            'blackout', 'dst_gap', 'paused', 'deferred_quota', 'cancelled',
                                            'expired', 'failed')),
    trigger          text NOT NULL,
    run_key          text NOT NULL,
    retried_from     uuid,
    scheduled_time   timestamptz NOT NULL,
    due_at           timestamptz NOT NULL,
    first_due_at     timestamptz NOT NULL,
    parameters       jsonb NOT NULL,
    timeout_seconds  double precision,
    max_attempts     integer NOT NULL,
    attempt_number   integer NOT NULL,
    lease_epoch      bigint NOT NULL,
    worker_id        uuid,
    claimed_at       timestamptz,
    started_at       timestamptz,
    completed_at     timestamptz NOT NULL,
    lateness_ms      double precision,
    result           jsonb,
    result_truncated boolean NOT NULL DEFAULT false,
    error            jsonb,
    batch_id         uuid,
    PRIMARY KEY (execution_id, shard, completed_at),
    CONSTRAINT history_started_if_it_ran CHECK (
        CASE status WHEN 'COMPLETED' THEN started_at IS NOT NULL AND attempt_number >= 1 AND worker_id IS NOT NULL
                    WHEN 'SKIPPED' THEN attempt_number = 0 OR disposition = 'expired'
                    ELSE true END),
    CONSTRAINT history_disposition_fits_the_status CHECK (
        CASE status WHEN 'COMPLETED' THEN disposition IN ('ran', 'late')
                    WHEN 'FAILED' THEN disposition = 'failed'
                    ELSE disposition NOT IN ('ran', 'late', 'failed') END),
    CONSTRAINT history_failed_with_an_error CHECK (status <> 'FAILED' OR error IS NOT NULL)
) PARTITION BY RANGE (completed_at);
---
CREATE INDEX history_job ON onthedot.execution_history (job_id, scheduled_time, execution_id);
---
CREATE INDEX history_user ON onthedot.execution_history (user_id, scheduled_time, execution_id);
---
CREATE INDEX history_queue ON onthedot.execution_history (queue, completed_at);
---
CREATE INDEX history_newest ON onthedot.execution_history (scheduled_time, execution_id);
---
CREATE INDEX history_job_not_completed ON onthedot.execution_history (job_id, scheduled_time, execution_id)
    WHERE status <> 'COMPLETED';
---
CREATE INDEX history_batch ON onthedot.execution_history (batch_id) WHERE batch_id IS NOT NULL;
---
CREATE INDEX history_not_completed ON onthedot.execution_history (user_id, scheduled_time, execution_id)
    WHERE status <> 'COMPLETED';
---
CREATE TABLE onthedot.attempts (
    shard          smallint NOT NULL,
    execution_id   uuid NOT NULL,
    attempt_number integer NOT NULL CHECK (attempt_number >= 1),
    lease_epoch    bigint NOT NULL,
    worker_id      uuid NOT NULL,
    started_at     timestamptz,
    ended_at       timestamptz NOT NULL,
    outcome        text NOT NULL CHECK (outcome IN ('failed', 'timeout', 'lost', 'interrupted')),
    error          jsonb NOT NULL,
    PRIMARY KEY (execution_id, attempt_number, lease_epoch, shard, ended_at)
) PARTITION BY RANGE (ended_at);
---
CREATE TABLE onthedot.execution_logs (
    shard          smallint NOT NULL,
    execution_id   uuid NOT NULL,
    attempt_number integer NOT NULL,
    sequence       integer NOT NULL,
    time           timestamptz NOT NULL,
    level          text NOT NULL CHECK (level IN ('DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL')),
    stream         text NOT NULL CHECK (stream IN ('log', 'stdout', 'stderr')),
    message        text NOT NULL,
    PRIMARY KEY (execution_id, attempt_number, sequence, shard, time)
) PARTITION BY RANGE (time);
---
CREATE TABLE onthedot.ledger_ranges (
    shard       smallint NOT NULL,
    job_id      uuid NOT NULL,
    first_time  timestamptz NOT NULL,
    last_time   timestamptz NOT NULL,
    occurrences bigint NOT NULL CHECK (occurrences > 0),
    disposition text NOT NULL
                CHECK (disposition IN ('skipped_overlap', 'skipped_misfire', 'coalesced', 'blackout', 'dst_gap',
                                       'paused', 'deferred_quota', 'cancelled', 'expired')),
    cause       text,
    recorded_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (job_id, first_time, disposition, shard),
    CHECK (first_time <= last_time)
) PARTITION BY HASH (shard);
---
CREATE TABLE onthedot.effects (
    shard        smallint NOT NULL,
    execution_id uuid NOT NULL,
    key          text NOT NULL CHECK (length(key) BETWEEN 1 AND 200),
    result       jsonb NOT NULL,
    lease_epoch  bigint NOT NULL,
    recorded_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (execution_id, key, shard)
) PARTITION BY HASH (shard);
---
CREATE INDEX effects_age ON onthedot.effects USING brin (recorded_at);
---
CREATE TABLE onthedot.workers (
    worker_id    uuid PRIMARY KEY,
    host         text NOT NULL,
    pid          integer NOT NULL,
    version      text NOT NULL,
    queues       text[] NOT NULL,
    labels       jsonb NOT NULL DEFAULT '{}',
    slots        integer NOT NULL CHECK (slots > 0),
    running      integer NOT NULL DEFAULT 0 CHECK (running >= 0),
    draining     boolean NOT NULL DEFAULT false,
    started_at   timestamptz NOT NULL DEFAULT now(),
    heartbeat_at timestamptz NOT NULL DEFAULT now(),
    stopped_at   timestamptz
);
---
CREATE INDEX workers_alive ON onthedot.workers (heartbeat_at) WHERE stopped_at IS NULL;
---
CREATE TABLE onthedot.idempotency_keys (
    key_hash     bytea NOT NULL CHECK (length(key_hash) = 32),
    request_hash bytea NOT NULL CHECK (length(request_hash) = 32),
    status_code  smallint NOT NULL,
    headers      jsonb NOT NULL DEFAULT '{}',
    answer       bytea NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (key_hash)
) PARTITION BY HASH (key_hash);
---
CREATE INDEX idempotency_keys_age ON onthedot.idempotency_keys USING brin (created_at);
