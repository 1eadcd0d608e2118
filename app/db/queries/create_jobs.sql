-- create_jobs: insert jobs and, for those that run once, their execution, in one statement.
-- One element a job: $1 shards (int2[]), $2 job_ids (uuid[]), $3 user_ids (text[]), $4 task_ids (text[]),
-- $5 task revisions that the parameters were checked against (int8[]), $6 names (text[]), $7 tags (text[], array
-- literals), $8 schedule types (text[]), $9 expressions (text[]), $10 scheduled_time (timestamptz[]),
-- $11 every_seconds (float8[]), $12 timezones (text[]), $13 timezones as requested (text[]), $14 gaps (text[]),
-- $15 folds (text[]), $16 starts_at (timestamptz[]), $17 ends_at (timestamptz[]), $18 misfires (text[]),
-- $19 misfire_grace_seconds (float8[]), $20 overlaps (text[]), $21 parameters (text[], JSON), $22 queues (text[]),
-- $23 priorities (int2[]), $24 max_retries (int4[]), $25 timeout_seconds (float8[]),
-- $26 materialize_at (timestamptz[]; null: runs once), $27 created_at (timestamptz[]),
-- $28 execution_ids (uuid[]; null: recurring), $29 due_at (timestamptz[]), $30 batch_ids (uuid[])
-- The joins with tasks and users are the check that both exist still and that the task is the one that was validated:
-- a job whose task has another revision is not inserted, not returned, and is validated anew by the caller.
-- Returns where the execution of each job waits; null: the job recurs. Not by joining `made` with `wanted`: once the
-- plan is generic, two CTEs without statistics are joined row by row (10,000 jobs: 5 s).
WITH wanted AS MATERIALIZED (
    SELECT w.*, t.queue AS task_queue, t.priority AS task_priority,
           1 + coalesce(w.max_retries, t.max_retries, q.max_retries) AS max_attempts
      FROM unnest($1::int2[], $2::uuid[], $3::text[], $4::text[], $5::int8[], $6::text[], $7::text[], $8::text[],
                  $9::text[], $10::timestamptz[], $11::float8[], $12::text[], $13::text[], $14::text[],
                  $15::text[], $16::timestamptz[], $17::timestamptz[], $18::text[], $19::float8[], $20::text[],
                  $21::text[], $22::text[], $23::int2[], $24::int4[], $25::float8[], $26::timestamptz[],
                  $27::timestamptz[], $28::uuid[], $29::timestamptz[], $30::uuid[])
           AS w (shard, job_id, user_id, task_id, task_revision, name, tags, schedule_type, expression,
                 scheduled_time, every_seconds, timezone, timezone_requested, gap, fold, starts_at, ends_at,
                 misfire, misfire_grace_seconds, overlap, parameters, queue, priority, max_retries,
                 timeout_seconds, materialize_at, created_at, execution_id, due_at, batch_id)
      JOIN onthedot.tasks AS t ON t.task_id = w.task_id AND t.revision = w.task_revision
      JOIN onthedot.users AS u ON u.user_id = w.user_id
      JOIN onthedot.queues AS q ON q.queue = coalesce(w.queue, t.queue)
), made AS (
    INSERT INTO onthedot.jobs
           (shard, job_id, user_id, task_id, name, tags, schedule_type, expression, scheduled_time, every_seconds,
            timezone, timezone_requested, gap, fold, starts_at, ends_at, misfire, misfire_grace_seconds, overlap,
            parameters, queue, priority, max_retries, timeout_seconds, materialized_until, materialize_at,
            created_at, updated_at, batch_id)
    SELECT shard, job_id, user_id, task_id, name, tags::text[], schedule_type, expression, scheduled_time,
           every_seconds, timezone, timezone_requested, gap, fold, starts_at, ends_at, misfire,
           misfire_grace_seconds, overlap, parameters::jsonb, queue, priority, max_retries, timeout_seconds,
           created_at, materialize_at, created_at, created_at, batch_id
      FROM wanted
    RETURNING job_id, materialize_at
), planned AS (
    INSERT INTO onthedot.executions
           (shard, execution_id, job_id, user_id, task_id, queue, priority, status, scheduled_time, due_at,
            first_due_at, parameters, timeout_seconds, max_attempts, batch_id)
    SELECT shard, execution_id, job_id, user_id, task_id, coalesce(queue, task_queue),
           coalesce(priority, task_priority), 'PENDING', coalesce(scheduled_time, due_at), due_at, due_at,
           parameters::jsonb, timeout_seconds, max_attempts, batch_id
      FROM wanted
     WHERE execution_id IS NOT NULL
    RETURNING job_id, queue, priority
)
SELECT job_id, queue, priority FROM planned
 UNION ALL
SELECT job_id, NULL, NULL FROM made WHERE materialize_at IS NOT NULL
