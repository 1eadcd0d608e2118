-- Unique jobs (docs/limits.md): one row a key, locked by whoever asks for a job under it.

ALTER TABLE onthedot.jobs
    ADD COLUMN unique_key text CHECK (length(unique_key) BETWEEN 1 AND 255),
    ADD COLUMN unique_for_seconds double precision CHECK (unique_for_seconds > 0),
    ADD COLUMN unique_policy text NOT NULL DEFAULT 'keep' CHECK (unique_policy IN ('keep', 'replace')),
    ADD CONSTRAINT jobs_only_unique_ones_have_a_policy CHECK (
        unique_key IS NOT NULL OR (unique_for_seconds IS NULL AND unique_policy = 'keep')),
    ADD CONSTRAINT jobs_unique_ones_run_once CHECK (
        unique_key IS NULL OR schedule_type IN ('IMMEDIATE', 'ONCE'));
---
COMMENT ON COLUMN onthedot.jobs.unique_key IS
    'What it was created under: while it holds the key, its user gets no second job of its task under it; null: none';
---
COMMENT ON COLUMN onthedot.jobs.unique_for_seconds IS
    'How long after its creation it holds the key; null: as long as an execution of it is live';
---
COMMENT ON COLUMN onthedot.jobs.unique_policy IS
    'What its creation asked for where the key is held: keep the job that holds it, or have it replaced while it has not begun';
---
CREATE TABLE onthedot.unique_keys (
    key_hash   bytea PRIMARY KEY CHECK (length(key_hash) = 32),
    shard      smallint,
    job_id     uuid,
    expires_at timestamptz
);
---
COMMENT ON TABLE onthedot.unique_keys IS 'Which job holds the unique_key of a user and task, or held it last';
---
COMMENT ON COLUMN onthedot.unique_keys.key_hash IS 'SHA-256 of user, task and key';
---
COMMENT ON COLUMN onthedot.unique_keys.shard IS 'The job''s';
---
COMMENT ON COLUMN onthedot.unique_keys.job_id IS 'The job; null: nobody has held it yet';
---
COMMENT ON COLUMN onthedot.unique_keys.expires_at IS 'Until when it holds the key; null: as long as an execution of it is live';
---
SELECT onthedot.ensure_roles();
