-- create_jobs: insert jobs and, for those that run once, their execution, in one statement.
-- $1 the jobs (json, an array of `NewJob`; what is null is left out). One document instead of thirty arrays: asyncpg
-- looks at every element of every array (10,000 jobs: 180 ms, so 20 ms; reading it costs PostgreSQL 30 ms more).
-- task_revision is the one that the parameters were checked against; materialize_at is null for jobs that run once,
-- execution_id and due_at for those that recur.
-- The joins with tasks and users are the check that both exist still and that the task is the one that was validated:
-- a job whose task has another revision is not inserted, not returned, and is validated anew by the caller.
-- due_at: what was planned long before it is stored is due now, for low-water marks trail by little (app/worker/marks.py).
-- counted: this transaction has counted it against its user's max_jobs_per_hour. What is to be counted and is not is left
-- out and returned as is_uncounted: users without a quota pay nothing for it.
-- Returns where the execution of each job waits; null: the job recurs. Not by joining `made` with `wanted`: once the
-- plan is generic, two CTEs without statistics are joined row by row (10,000 jobs: 5 s).
WITH wanted AS MATERIALIZED (
    SELECT w.*, t.queue AS task_queue, t.priority AS task_priority,
           1 + coalesce(w.max_retries, t.max_retries, q.max_retries) AS max_attempts,
           u.max_jobs_per_hour IS NOT NULL AND w.execution_id IS NOT NULL AND w.counted IS NOT TRUE AS is_uncounted,
           CASE WHEN coalesce(w.concurrency_key, t.concurrency_key) IS NOT NULL
                THEN onthedot.render_key(coalesce(w.concurrency_key, t.concurrency_key), w.parameters) END AS key,
           coalesce(w.concurrency_limit, t.concurrency_limit) AS key_limit,
           t.limited OR u.limited OR q.limited OR w.concurrency_key IS NOT NULL OR w.overlap <> 'allow' AS limited
      FROM json_to_recordset($1::json)
           AS w (shard int2, job_id uuid, user_id text, task_id text, task_revision int8, name text, tags text[],
                 schedule_type text, expression text, scheduled_time timestamptz, every_seconds float8,
                 timezone text, timezone_requested text, gap text, fold text, starts_at timestamptz,
                 ends_at timestamptz, misfire text, misfire_grace_seconds float8, overlap text, parameters jsonb,
                 queue text, priority int2, max_retries int4, timeout_seconds float8, materialize_at timestamptz,
                 created_at timestamptz, execution_id uuid, due_at timestamptz, batch_id uuid,
                 expires_after_seconds float8, counted bool, concurrency_key text, concurrency_limit int4,
                 unique_key text, unique_for_seconds float8, unique_policy text, depends_on uuid[])
      JOIN onthedot.tasks AS t ON t.task_id = w.task_id AND t.revision = w.task_revision
      JOIN onthedot.users AS u ON u.user_id = w.user_id
      JOIN onthedot.queues AS q ON q.queue = coalesce(w.queue, t.queue)
), made AS (
    INSERT INTO onthedot.jobs
           (shard, job_id, user_id, task_id, name, tags, schedule_type, expression, scheduled_time, every_seconds,
            timezone, timezone_requested, gap, fold, starts_at, ends_at, misfire, misfire_grace_seconds, overlap,
            parameters, queue, priority, max_retries, timeout_seconds, materialized_until, materialize_at,
            created_at, updated_at, batch_id, expires_after_seconds, concurrency_key,
            concurrency_limit, unique_key, unique_for_seconds, unique_policy, depends_on)
    SELECT shard, job_id, user_id, task_id, name, tags, schedule_type, expression, scheduled_time,
           every_seconds, timezone, timezone_requested, gap, fold, starts_at, ends_at, misfire,
           misfire_grace_seconds, overlap, parameters, queue, priority, max_retries, timeout_seconds,
           created_at, materialize_at, created_at, created_at, batch_id, expires_after_seconds, concurrency_key,
           concurrency_limit, unique_key, unique_for_seconds, coalesce(unique_policy, 'keep'),
           coalesce(depends_on, '{}')
      FROM wanted
     WHERE NOT is_uncounted
    RETURNING job_id, materialize_at
), planned AS (
    INSERT INTO onthedot.executions
           (shard, execution_id, job_id, user_id, task_id, queue, priority, status, scheduled_time, due_at,
            first_due_at, parameters, timeout_seconds, max_attempts, batch_id, expires_at, limited, concurrency_key,
            concurrency_limit, overlap)
    SELECT shard, execution_id, job_id, user_id, task_id, coalesce(queue, task_queue),
           coalesce(priority, task_priority), CASE WHEN depends_on IS NULL THEN 'PENDING' ELSE 'BLOCKED' END,
           coalesce(scheduled_time, due_at), greatest(due_at, now() - interval '5 s'),
           due_at, parameters, timeout_seconds, max_attempts, batch_id,
           onthedot.start_deadline(due_at, expires_after_seconds), limited, key, key_limit, overlap
      FROM wanted
     WHERE execution_id IS NOT NULL AND NOT is_uncounted
    RETURNING job_id, queue, priority, limited
)
SELECT job_id, false AS is_uncounted, queue, priority, limited FROM planned
 UNION ALL
SELECT job_id, false, NULL, NULL, NULL FROM made WHERE materialize_at IS NOT NULL
 UNION ALL
SELECT job_id, true, NULL, NULL, NULL FROM wanted WHERE is_uncounted
