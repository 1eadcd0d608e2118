-- The audit log: who changed what, when, from what to what, in the transaction of the change.

CREATE FUNCTION onthedot.current_actor() RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- A setting that some earlier transaction of the session had is an empty text afterwards, not null.
    RETURN coalesce(nullif(current_setting('onthedot.actor', true), ''), 'sql:' || session_user);
END $$;
---
COMMENT ON FUNCTION onthedot.current_actor() IS
    'Who is behind this transaction: what the API has set as onthedot.actor, else the login, as sql:name';
---
CREATE FUNCTION onthedot.current_client() RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN coalesce(nullif(current_setting('onthedot.client', true), ''),
                    concat_ws(' ', nullif(current_setting('application_name'), ''), host(inet_client_addr())), '');
END $$;
---
COMMENT ON FUNCTION onthedot.current_client() IS
    'By what a change is made: what the transaction has set as onthedot.client, else application_name and address';
---
CREATE TABLE onthedot.audit_log (
    audit_id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at           timestamptz NOT NULL DEFAULT now(),
    actor        text NOT NULL DEFAULT onthedot.current_actor(),
    action       text NOT NULL,
    target_type  text NOT NULL,
    target_id    text NOT NULL,
    before       jsonb,
    after        jsonb,
    reason       text DEFAULT nullif(current_setting('onthedot.reason', true), ''),
    request_id   text DEFAULT nullif(current_setting('onthedot.request_id', true), ''),
    client       text NOT NULL DEFAULT onthedot.current_client(),
    session_role text NOT NULL DEFAULT session_user,
    CHECK (action LIKE target_type || '.%')
);
---
CREATE INDEX audit_log_target ON onthedot.audit_log (target_type, target_id, audit_id);
---
CREATE INDEX audit_log_actor ON onthedot.audit_log (actor, audit_id);
---
CREATE INDEX audit_log_at ON onthedot.audit_log USING brin (at);
---
CREATE FUNCTION onthedot.refuse_change() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE '% of % is refused: it is append-only', TG_OP, TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END $$;
---
COMMENT ON FUNCTION onthedot.refuse_change() IS 'Keeps a table append-only';
---
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON onthedot.audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION onthedot.refuse_change();
---
-- Also for a superuser who has set session_replication_role to replica.
ALTER TABLE onthedot.audit_log ENABLE ALWAYS TRIGGER append_only;
---
CREATE FUNCTION onthedot.changed_columns(one jsonb, other jsonb) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    silent  CONSTANT text[] := '{key_hash,last_used_at,updated_at,revision,shard,materialized_until,materialize_at}';
    secrets CONSTANT text[] := '{slack_url,webhook_url,webhook_secret}';
    kept    jsonb;
    secret  text;
BEGIN
    SELECT jsonb_object_agg(key, value) INTO kept
      FROM jsonb_each(one - silent)
     WHERE value IS DISTINCT FROM other -> key;
    FOREACH secret IN ARRAY secrets LOOP
        IF kept #>> ARRAY['notification_preferences', secret] IS NOT NULL THEN
            kept := jsonb_set(kept, ARRAY['notification_preferences', secret], '"********"');
        END IF;
    END LOOP;
    RETURN kept;
END $$;
---
COMMENT ON FUNCTION onthedot.changed_columns(jsonb, jsonb) IS
    'What of one row differs in another one, without secrets and what moves by itself; null: nothing';
---
-- Arguments: what the row is called in the log, and the column of its id.
-- SECURITY DEFINER: who may change a row need not have the right to write into the log.
CREATE FUNCTION onthedot.note_change() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    old_row  CONSTANT jsonb := CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) ELSE '{}' END;
    new_row  CONSTANT jsonb := CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) ELSE '{}' END;
    taken    CONSTANT jsonb := onthedot.changed_columns(old_row, new_row);
    given    CONSTANT jsonb := onthedot.changed_columns(new_row, old_row);
    verb     CONSTANT text := CASE TG_OP WHEN 'INSERT' THEN 'create' WHEN 'UPDATE' THEN 'update' ELSE 'delete' END;
BEGIN
    IF taken IS NOT NULL OR given IS NOT NULL THEN
        INSERT INTO onthedot.audit_log (action, target_type, target_id, before, after)
        VALUES (TG_ARGV[0] || '.' || verb, TG_ARGV[0], coalesce(new_row ->> TG_ARGV[1], old_row ->> TG_ARGV[1]),
                taken, given);
    END IF;
    RETURN NULL;
END $$;
---
COMMENT ON FUNCTION onthedot.note_change() IS 'Writes the audit row of a changed row, in the transaction of the change';
---
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON onthedot.users
    FOR EACH ROW EXECUTE FUNCTION onthedot.note_change('user', 'user_id');
---
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON onthedot.api_keys
    FOR EACH ROW EXECUTE FUNCTION onthedot.note_change('key', 'key_id');
---
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON onthedot.queues
    FOR EACH ROW EXECUTE FUNCTION onthedot.note_change('queue', 'queue');
---
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON onthedot.tasks
    FOR EACH ROW EXECUTE FUNCTION onthedot.note_change('task', 'task_id');
---
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON onthedot.zone_aliases
    FOR EACH ROW EXECUTE FUNCTION onthedot.note_change('zone_alias', 'alias');
---
-- An order to drain; a worker that says by its heartbeat that it drains has none.
CREATE TRIGGER audit AFTER UPDATE OF draining ON onthedot.workers
    FOR EACH ROW WHEN (NEW.draining <> OLD.draining AND NEW.heartbeat_at = OLD.heartbeat_at)
    EXECUTE FUNCTION onthedot.note_change('worker', 'worker_id');
---
-- Jobs are on plain PostgreSQL only: Citus has no triggers on distributed tables.
-- The row of a job that runs once tells by itself who made it and when (10,000 a second); so does the history, what
-- became of it. A materializer that moves the watermark fires nothing: these are the columns that people change.
CREATE TRIGGER audit_create AFTER INSERT ON onthedot.jobs
    FOR EACH ROW WHEN (NEW.schedule_type IN ('RECURRING', 'INTERVAL'))
    EXECUTE FUNCTION onthedot.note_change('job', 'job_id');
---
CREATE TRIGGER audit_update AFTER UPDATE OF
    user_id, task_id, name, tags, schedule_type, expression, scheduled_time, every_seconds, timezone,
    timezone_requested, gap, fold, starts_at, ends_at, misfire, misfire_grace_seconds, overlap, parameters, queue,
    priority, max_retries, timeout_seconds, is_active, pause_reason, paused_until ON onthedot.jobs
    FOR EACH ROW EXECUTE FUNCTION onthedot.note_change('job', 'job_id');
---
-- Retention deletes as many jobs that have run once as were created; it says so in the program's log. And what was
-- created in this very transaction, and is taken back, has never been.
CREATE TRIGGER audit_delete AFTER DELETE ON onthedot.jobs
    FOR EACH ROW WHEN (OLD.schedule_type IN ('RECURRING', 'INTERVAL')
                       OR current_setting('onthedot.actor', true) IS DISTINCT FROM 'system:retention'
                       AND OLD.xmin <> pg_current_xact_id()::xid)
    EXECUTE FUNCTION onthedot.note_change('job', 'job_id')
