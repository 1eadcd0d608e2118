-- change_job: write what may change of a job that is locked, and raise its version.
-- $1 shard (int2), $2 job_id (uuid), $3 name (text), $4 tags (text[]), $5 schedule type (text), $6 expression (text),
-- $7 scheduled_time (timestamptz), $8 every_seconds (float8), $9 timezone (text), $10 timezone as requested (text),
-- $11 gap (text), $12 fold (text), $13 starts_at (timestamptz), $14 ends_at (timestamptz), $15 misfire (text),
-- $16 misfire_grace_seconds (float8), $17 overlap (text), $18 parameters (text, JSON; null: as they are),
-- $19 queue (text), $20 priority (int2), $21 max_retries (int4), $22 timeout_seconds (float8), $23 is_active (bool),
-- $24 pause_reason (text), $25 paused_until (timestamptz), $26 expires_after_seconds (float8),
-- $27 concurrency_key (text), $28 concurrency_limit (int4), $29 depends_on (uuid[])
-- index: primary key. New parameters have been checked by who writes them. materialize_at: what is planned anew is set
-- by advance_jobs.sql in the same transaction.
UPDATE onthedot.jobs
   SET name = $3, tags = $4, schedule_type = $5, expression = $6, scheduled_time = $7, every_seconds = $8,
       timezone = $9, timezone_requested = $10, gap = $11, fold = $12, starts_at = $13, ends_at = $14,
       misfire = $15, misfire_grace_seconds = $16, overlap = $17, parameters = coalesce($18::text::jsonb, parameters),
       parameters_checked = parameters_checked OR (parameters <> $18::text::jsonb) IS TRUE, queue = $19,
       priority = $20, max_retries = $21, timeout_seconds = $22, is_active = $23, pause_reason = $24,
       paused_until = $25, expires_after_seconds = $26, concurrency_key = $27, concurrency_limit = $28, depends_on = $29,
       materialize_at = NULL, version = version + 1, updated_at = now()
 WHERE shard = $1 AND job_id = $2
RETURNING version
