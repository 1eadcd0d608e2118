-- What SQL producers and handlers call: jobs made in the caller's transaction, effects that commit only under a lease.
-- PL/pgSQL throughout: Citus cannot plan LANGUAGE sql functions over distributed tables.
-- SECURITY DEFINER: whoever may execute them needs no right to any table. Their search_path is therefore their own.

-- Parameters that come by SQL meet their JSON Schema only in a worker, at the claim. The mark is on the job, for whatever
-- is run of it later, and on the execution, because the claim reads no job.
ALTER TABLE onthedot.jobs ADD COLUMN parameters_checked boolean NOT NULL DEFAULT true;
---
COMMENT ON COLUMN onthedot.jobs.parameters_checked IS
    'False: made from SQL; a worker checks the parameters against the task''s schema when it claims an execution';
---
ALTER TABLE onthedot.executions ADD COLUMN parameters_checked boolean NOT NULL DEFAULT true;
---
COMMENT ON COLUMN onthedot.executions.parameters_checked IS
    'False: the parameters are checked against the task''s schema when it is claimed; copied from the job';
---
-- Owner of the jobs of all logins that are not called like a user. It holds no key, so nobody acts as it by the API.
INSERT INTO onthedot.users (user_id, name, role) VALUES ('sql', 'SQL producers', 'viewer');
---
-- RFC 9562, 5.7, with the fraction of the millisecond in the 12 bits after the version (6.2, method 3), as app.domain.ids
-- makes them. PostgreSQL has a function of its own only from 18 on.
CREATE FUNCTION onthedot.uuid7(last_byte integer DEFAULT NULL) RETURNS uuid
LANGUAGE plpgsql VOLATILE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    microseconds CONSTANT bigint := extract(epoch FROM clock_timestamp()) * 1000000;
    version      CONSTANT bigint := 7 << 12;
    fraction     CONSTANT bigint := microseconds % 1000 * 4096 / 1000;
    -- The second half of a random UUID carries the variant already.
    bytes bytea := int8send((microseconds / 1000 << 16) | version | fraction)
                   || substring(uuid_send(gen_random_uuid()) FROM 9);
BEGIN
    IF last_byte IS NOT NULL THEN
        bytes := set_byte(bytes, 15, last_byte);
    END IF;
    RETURN encode(bytes, 'hex')::uuid;
END $$;
---
COMMENT ON FUNCTION onthedot.uuid7(integer) IS
    'A UUIDv7 of this moment; an execution''s last byte repeats its job''s: uuid7(get_byte(uuid_send(job_id), 15))';
---
CREATE FUNCTION onthedot.enqueue(
    task_id text, parameters jsonb DEFAULT '{}', run_at timestamptz DEFAULT now(), idempotency_key text DEFAULT NULL
) RETURNS uuid
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    job_id CONSTANT uuid := onthedot.uuid7();
    known  uuid;
BEGIN
    PERFORM onthedot.check_enqueued(parameters, run_at, idempotency_key);
    IF idempotency_key IS NOT NULL THEN
        known := onthedot.recall_enqueued(
            job_id,
            key_hash => sha256(convert_to(concat_ws(E'\n', 'enqueue()', session_user, idempotency_key), 'UTF8')),
            request_hash => sha256(convert_to(concat_ws(E'\n', task_id, parameters), 'UTF8')));
    END IF;
    IF known IS NULL THEN
        PERFORM onthedot.create_enqueued(job_id, task_id, parameters, run_at);
    END IF;
    RETURN coalesce(known, job_id);
END $$;
---
COMMENT ON FUNCTION onthedot.enqueue(text, jsonb, timestamptz, text) IS
    'Creates a job that runs once, in your transaction: it exists if and only if you commit. Returns its id. '
    'A repeated idempotency_key (of the same login, kept 24 hours) creates nothing and returns the first job''s id. '
    'The owner is the user called like your login, else the user sql. '
    'An unknown task is an error; bad parameters make the execution fail as configuration_error.';
---
CREATE FUNCTION onthedot.check_enqueued(parameters jsonb, run_at timestamptz, idempotency_key text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    longest CONSTANT integer := 1024 * 1024;
BEGIN
    IF jsonb_typeof(parameters) IS DISTINCT FROM 'object' THEN
        RAISE 'parameters: use a JSON object, not %', coalesce(jsonb_typeof(parameters), 'NULL')
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF octet_length(parameters::text) > longest THEN
        RAISE 'parameters: use at most 1 MiB, not % bytes', octet_length(parameters::text)
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF (run_at BETWEEN '1970-01-01 00:00Z' AND '9999-12-30 00:00Z') IS NOT TRUE THEN
        RAISE 'run_at: use an instant from 1970 to 9999, not %', coalesce(run_at::text, 'NULL')
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF idempotency_key = '' THEN
        RAISE 'idempotency_key: use some text, or NULL for none' USING ERRCODE = 'invalid_parameter_value';
    END IF;
END $$;
---
COMMENT ON FUNCTION onthedot.check_enqueued(jsonb, timestamptz, text) IS
    'Part of enqueue: refuses what nothing could be done with';
---
-- Exact under concurrency by the primary key: a second insert of a key waits for the first one's transaction, then finds
-- its row, or takes its place if it was rolled back. (At REPEATABLE READ it fails to serialize instead.)
CREATE FUNCTION onthedot.recall_enqueued(job_id uuid, key_hash bytea, request_hash bytea) RETURNS uuid
LANGUAGE plpgsql AS $$
DECLARE
    known onthedot.idempotency_keys;
BEGIN
    LOOP
        INSERT INTO onthedot.idempotency_keys AS k (key_hash, request_hash, status_code, answer)
        VALUES (recall_enqueued.key_hash, recall_enqueued.request_hash, 201, uuid_send(job_id))
            ON CONFLICT DO NOTHING;
        IF FOUND THEN
            RETURN NULL;
        END IF;
        SELECT * INTO known FROM onthedot.idempotency_keys AS k WHERE k.key_hash = recall_enqueued.key_hash;
        EXIT WHEN FOUND;  -- else it grew 24 hours old between the two statements
    END LOOP;
    IF known.request_hash <> recall_enqueued.request_hash THEN
        RAISE WARNING 'idempotency_key: it stands for a job with another task or other parameters, which is returned';
    END IF;
    RETURN encode(known.answer, 'hex')::uuid;
END $$;
---
COMMENT ON FUNCTION onthedot.recall_enqueued(uuid, bytea, bytea) IS
    'Part of enqueue: the job that an idempotency_key stands for already; else null, and from now on it stands for this one';
---
-- One statement, as in create_jobs.sql: the lock on jobs is taken before the task is looked up, so that a task cannot be
-- deleted in between. The instant now() is the default of run_at. The clock, not now(): due_at never lies before the
-- moment of the insert, however long the caller's transaction has been open.
CREATE FUNCTION onthedot.create_enqueued(job_id uuid, task_id text, parameters jsonb, run_at timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    new       CONSTANT uuid := job_id;
    moment    CONSTANT timestamptz := clock_timestamp();
    once_at   CONSTANT timestamptz := nullif(run_at, now());
    new_shard CONSTANT smallint := onthedot.shard_of(job_id);
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
    INSERT INTO onthedot.executions
           (shard, execution_id, job_id, user_id, task_id, queue, priority, status, scheduled_time, due_at,
            first_due_at, parameters, parameters_checked, max_attempts)
    SELECT new_shard, onthedot.uuid7(get_byte(uuid_send(new), 15)), new, user_id, task_id, queue, priority,
           'PENDING', coalesce(once_at, moment), greatest(once_at, moment), greatest(once_at, moment),
           create_enqueued.parameters, false, max_attempts
      FROM wanted;
    IF NOT FOUND THEN
        RAISE 'there is no task %', quote_nullable(left(create_enqueued.task_id, 128))
            USING ERRCODE = 'no_data_found', HINT = 'Create the task first: POST /api/v1/tasks';
    END IF;
END $$;
---
COMMENT ON FUNCTION onthedot.create_enqueued(uuid, text, jsonb, timestamptz) IS
    'Part of enqueue: stores the job and its execution';
---
-- FOR KEY SHARE is as much as is needed: whoever takes an execution from its worker (reap_*.sql) locks it FOR UPDATE SKIP
-- LOCKED and passes it by until the commit, while renewals of the lease and requests to cancel are updates that go on.
-- A promotion may lose a claim and grant its epoch again: the token's timeline tells the two apart.
CREATE FUNCTION onthedot.assert_lease(execution_id uuid, fencing_token bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    home     CONSTANT smallint := onthedot.shard_of(execution_id);
    timeline CONSTANT bigint := ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint;
    lease    onthedot.executions;
    problem  text;
BEGIN
    SELECT * INTO lease
      FROM onthedot.executions AS e
     WHERE e.shard = home AND e.execution_id = assert_lease.execution_id
       FOR KEY SHARE;
    problem := CASE
        WHEN lease.status IS DISTINCT FROM 'RUNNING' THEN 'it does not run'
        WHEN (timeline << 40) + lease.lease_epoch IS DISTINCT FROM fencing_token THEN 'its lease is somebody else''s'
        WHEN lease.lease_expires_at <= clock_timestamp() THEN format('its lease ran out at %s', lease.lease_expires_at)
    END;
    IF problem IS NOT NULL THEN
        RAISE 'execution % is not yours: %', execution_id, problem USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
END $$;
---
COMMENT ON FUNCTION onthedot.assert_lease(uuid, bigint) IS
    'For handlers: an error unless the execution runs under the lease of this fencing_token; if it does, nobody takes it '
    'over before your transaction has ended'
