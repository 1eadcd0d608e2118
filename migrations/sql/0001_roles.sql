-- Who may do what by SQL. Comes last: the grants are on what there is.

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA onthedot FROM PUBLIC;
---
-- Every migration ends with a call of this function, so that the roles may read its views too. A managed service may
-- keep the migrating role from creating roles: whoever may creates them, and the owner of the schema calls it again.
-- Roles belong to the whole server: another database's migration may create them at the same moment.
CREATE FUNCTION onthedot.ensure_roles() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['onthedot_producer', 'onthedot_auditor'] LOOP
        BEGIN
            IF to_regrole(role) IS NULL THEN
                EXECUTE format('CREATE ROLE %I NOLOGIN', role);
            END IF;
        EXCEPTION
            WHEN duplicate_object OR unique_violation THEN NULL;
            WHEN insufficient_privilege THEN
                RAISE NOTICE 'the role % was not created', role
                    USING HINT = format('Let somebody who may run: CREATE ROLE %I NOLOGIN; and then call %s',
                                        role, 'onthedot.ensure_roles()');
        END;
    END LOOP;
    IF to_regrole('onthedot_producer') IS NOT NULL THEN
        GRANT USAGE ON SCHEMA onthedot TO onthedot_producer;
        GRANT EXECUTE ON FUNCTION onthedot.enqueue(text, jsonb, timestamptz, text) TO onthedot_producer;
    END IF;
    IF to_regrole('onthedot_auditor') IS NOT NULL THEN
        GRANT USAGE ON SCHEMA audit TO onthedot_auditor;
        GRANT SELECT ON ALL TABLES IN SCHEMA audit TO onthedot_auditor;
    END IF;
END $$;
---
COMMENT ON FUNCTION onthedot.ensure_roles() IS
    'Creates the roles onthedot_producer (may call enqueue) and onthedot_auditor (may read the views of the schema audit) '
    'where it may, and grants them that. Nobody logs in as them: GRANT onthedot_auditor TO somebody';
---
REVOKE ALL ON FUNCTION onthedot.ensure_roles() FROM PUBLIC;
---
SELECT onthedot.ensure_roles();
---
-- So that psql, logged in as the owner, finds tables and views by their bare names. Our own statements name the schema.
DO $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM pg_db_role_setting AS s CROSS JOIN unnest(s.setconfig) AS setting
         WHERE s.setrole = current_user::regrole AND setting LIKE 'search\_path=%'
           AND s.setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database()))
    THEN
        EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE %I SET search_path = "$user", public, onthedot, audit',
                       current_database());
    END IF;
END $$
