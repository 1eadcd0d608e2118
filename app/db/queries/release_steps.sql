-- release_steps: create the executions of steps that begin.
-- One element a step: $1 workflow_run_ids (uuid[]), $2 steps (text[]), $3 rounds (int4[]), $4 task_ids (text[]),
-- $5 queues (text[]), $6 priorities (int2[]), $7 max_retries (int4[]), $8 timeouts in seconds (float8[]);
-- one element an execution: $9 which of the steps, from 1 (int4[]), $10 indexes (int4[]), $11 execution_ids (uuid[]),
-- $12 parameters (text[], JSON); $13 the shards of the runs (int2[])
-- index: primary keys. What the claim decides by is copied onto the row, as in run_job.sql; a job's own settings are those
-- of what begins the run, and not of its steps. A step whose task or queue is gone creates nothing, and is not returned.
-- ON CONFLICT: one that has been released stays as it is.
INSERT INTO onthedot.executions
       (shard, execution_id, job_id, user_id, task_id, queue, priority, status, trigger, run_key, scheduled_time,
        due_at, first_due_at, parameters, parameters_checked, timeout_seconds, max_attempts, limited, concurrency_key,
        concurrency_limit)
SELECT r.shard, x.execution_id, r.workflow_id, r.user_id, t.task_id, q.queue,
       coalesce(($6::int2[])[x.nth], t.priority), 'PENDING', 'workflow',
       format('w:%s/%s/%s/%s', r.workflow_run_id, ($2::text[])[x.nth], ($3::int4[])[x.nth], x.index),
       r.scheduled_time, now(), now(), x.parameters::jsonb, false, ($8::float8[])[x.nth],
       1 + coalesce(($7::int4[])[x.nth], t.max_retries, q.max_retries),
       t.limited OR coalesce(u.limited, false) OR q.limited,
       CASE WHEN t.concurrency_key IS NOT NULL THEN onthedot.render_key(t.concurrency_key, x.parameters::jsonb) END,
       t.concurrency_limit
  FROM unnest($9::int4[], $10::int4[], $11::uuid[], $12::text[]) AS x (nth, index, execution_id, parameters)
  JOIN onthedot.workflow_runs AS r ON r.shard = ANY ($13::int2[]) AND r.workflow_run_id = ($1::uuid[])[x.nth]
  JOIN onthedot.tasks AS t ON t.task_id = ($4::text[])[x.nth]
  JOIN onthedot.queues AS q ON q.queue = coalesce(($5::text[])[x.nth], t.queue)
  LEFT JOIN onthedot.users AS u ON u.user_id = r.user_id
    ON CONFLICT DO NOTHING
RETURNING shard, execution_id, queue, priority, due_at, limited
