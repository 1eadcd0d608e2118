-- Workflows (docs/workflows.md). A workflow is a job: what its executions do is to begin a run. The steps of a run are
-- executions of that job, too, in its shard; which, their run_key tells: w:RUN/STEP/ROUND/INDEX.

CREATE TABLE onthedot.workflow_definitions (
    shard            smallint NOT NULL,
    workflow_id      uuid NOT NULL,
    version          integer NOT NULL CHECK (version >= 1),
    steps            jsonb NOT NULL CHECK (jsonb_typeof(steps) = 'array'),
    overlap          text NOT NULL DEFAULT 'allow' CHECK (overlap IN ('allow', 'skip', 'queue', 'cancel_running')),
    deadline_seconds double precision CHECK (deadline_seconds > 0),
    created_by       text NOT NULL,
    created_at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workflow_id, version, shard)
) PARTITION BY HASH (shard);
---
COMMENT ON TABLE onthedot.workflow_definitions IS
    'What the runs of workflows are made of. A change adds a version; runs that have begun keep theirs';
---
COMMENT ON COLUMN onthedot.workflow_definitions.shard IS 'The workflow''s';
---
COMMENT ON COLUMN onthedot.workflow_definitions.workflow_id IS 'The workflow, which is a job: jobs.job_id';
---
COMMENT ON COLUMN onthedot.workflow_definitions.version IS 'Counts from 1; the highest holds for new runs';
---
COMMENT ON COLUMN onthedot.workflow_definitions.steps IS
    'The steps: key, task_id, parameters, depends_on, when, map, queue, priority, max_retries, timeout_seconds';
---
COMMENT ON COLUMN onthedot.workflow_definitions.overlap IS
    'What becomes of a run that is due while another run of the workflow is under way';
---
COMMENT ON COLUMN onthedot.workflow_definitions.deadline_seconds IS
    'A run that is not over so long after it began is stopped, and has failed; null: it may take as long as it takes';
---
COMMENT ON COLUMN onthedot.workflow_definitions.created_by IS 'Who defined it so';
---
COMMENT ON COLUMN onthedot.workflow_definitions.created_at IS 'When';
---
CREATE TABLE onthedot.workflow_runs (
    shard           smallint NOT NULL,
    workflow_run_id uuid NOT NULL,
    workflow_id     uuid NOT NULL,
    version         integer NOT NULL,
    user_id         text NOT NULL,
    status          text NOT NULL DEFAULT 'RUNNING' CHECK (status IN ('RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED')),
    trigger         text NOT NULL,
    scheduled_time  timestamptz NOT NULL,
    parameters      jsonb NOT NULL,
    is_queued       boolean NOT NULL DEFAULT false,
    ends_as         text CHECK (ends_as IN ('FAILED', 'CANCELLED')),
    cause           text,
    started_at      timestamptz NOT NULL DEFAULT now(),
    deadline_at     timestamptz,
    completed_at    timestamptz,
    PRIMARY KEY (workflow_run_id, shard),
    CONSTRAINT workflow_runs_completed_once_over CHECK ((status = 'RUNNING') = (completed_at IS NULL)),
    CONSTRAINT workflow_runs_wait_only_while_running CHECK (NOT is_queued OR status = 'RUNNING')
) PARTITION BY HASH (shard);
---
CREATE INDEX workflow_runs_workflow ON onthedot.workflow_runs (workflow_id, started_at, workflow_run_id);
---
CREATE INDEX workflow_runs_newest ON onthedot.workflow_runs (started_at, workflow_run_id);
---
-- Few among the many that are over.
CREATE INDEX workflow_runs_under_way ON onthedot.workflow_runs (workflow_id) WHERE status = 'RUNNING';
---
CREATE INDEX workflow_runs_deadline ON onthedot.workflow_runs (deadline_at)
    WHERE status = 'RUNNING' AND deadline_at IS NOT NULL;
---
CREATE INDEX workflow_runs_over ON onthedot.workflow_runs USING brin (completed_at);
---
COMMENT ON TABLE onthedot.workflow_runs IS 'Runs of workflows; who changes the steps of one locks its row';
---
COMMENT ON COLUMN onthedot.workflow_runs.shard IS 'The workflow''s';
---
COMMENT ON COLUMN onthedot.workflow_runs.workflow_run_id IS
    'The run. It is the execution_id of the workflow''s execution that began it, so that none begins twice';
---
COMMENT ON COLUMN onthedot.workflow_runs.workflow_id IS 'The workflow';
---
COMMENT ON COLUMN onthedot.workflow_runs.version IS 'The version of its definition that it was begun with, and keeps';
---
COMMENT ON COLUMN onthedot.workflow_runs.user_id IS 'Whose it is';
---
COMMENT ON COLUMN onthedot.workflow_runs.status IS 'RUNNING until every step has ended; FAILED if one has failed';
---
COMMENT ON COLUMN onthedot.workflow_runs.trigger IS 'What brought it about, as of its execution';
---
COMMENT ON COLUMN onthedot.workflow_runs.scheduled_time IS 'The instant that it was asked for';
---
COMMENT ON COLUMN onthedot.workflow_runs.parameters IS 'What steps refer to as parameters';
---
COMMENT ON COLUMN onthedot.workflow_runs.is_queued IS 'It waits for another run of the workflow to end (overlap: queue)';
---
COMMENT ON COLUMN onthedot.workflow_runs.ends_as IS 'It is being stopped, and this is how it will have ended; null: it goes on';
---
COMMENT ON COLUMN onthedot.workflow_runs.cause IS 'Why it was stopped, or never began';
---
COMMENT ON COLUMN onthedot.workflow_runs.started_at IS 'When it began';
---
COMMENT ON COLUMN onthedot.workflow_runs.deadline_at IS 'When it is stopped if it is not over; null: never';
---
COMMENT ON COLUMN onthedot.workflow_runs.completed_at IS 'When its last step had ended; a retry takes it back';
---
CREATE TABLE onthedot.workflow_run_steps (
    shard           smallint NOT NULL,
    workflow_run_id uuid NOT NULL,
    step            text COLLATE "C" NOT NULL,
    status          text NOT NULL DEFAULT 'BLOCKED'
                    CHECK (status IN ('BLOCKED', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED', 'SKIPPED')),
    counts_as       text NOT NULL DEFAULT 'open' CHECK (counts_as IN ('open', 'success', 'failure', 'nothing')),
    round           integer NOT NULL DEFAULT 0 CHECK (round >= 0),
    instances       integer NOT NULL DEFAULT 0 CHECK (instances >= 0),
    cause           text,
    released_at     timestamptz,
    completed_at    timestamptz,
    PRIMARY KEY (workflow_run_id, step, shard),
    CONSTRAINT workflow_run_steps_count_once_over CHECK (
        (status IN ('BLOCKED', 'RUNNING')) = (counts_as = 'open') AND (counts_as = 'open') = (completed_at IS NULL)),
    CONSTRAINT workflow_run_steps_end_with_a_cause CHECK (
        CASE status WHEN 'FAILED' THEN cause IS NOT NULL WHEN 'COMPLETED' THEN counts_as = 'success' ELSE true END)
) PARTITION BY HASH (shard);
---
-- What the sweep walks: steps that may have ended without anybody having told the run.
CREATE INDEX workflow_run_steps_running ON onthedot.workflow_run_steps (workflow_run_id, step) WHERE status = 'RUNNING';
---
COMMENT ON TABLE onthedot.workflow_run_steps IS
    'Steps of runs. Which executions a step still waits for is not counted here: it is those that are live';
---
COMMENT ON COLUMN onthedot.workflow_run_steps.shard IS 'The workflow''s';
---
COMMENT ON COLUMN onthedot.workflow_run_steps.workflow_run_id IS 'The run';
---
COMMENT ON COLUMN onthedot.workflow_run_steps.step IS 'The step''s key';
---
COMMENT ON COLUMN onthedot.workflow_run_steps.status IS
    'BLOCKED: it waits for those before it; RUNNING: it has executions that are live; else how it has ended';
---
COMMENT ON COLUMN onthedot.workflow_run_steps.counts_as IS 'How it counts for the steps after it; open: it has not ended';
---
COMMENT ON COLUMN onthedot.workflow_run_steps.round IS 'How often it has begun: a retry is another round';
---
COMMENT ON COLUMN onthedot.workflow_run_steps.instances IS 'Executions of this round: one, or one for each item that it maps over';
---
COMMENT ON COLUMN onthedot.workflow_run_steps.cause IS 'Why it did not complete';
---
COMMENT ON COLUMN onthedot.workflow_run_steps.released_at IS 'When it began to wait for a worker';
---
COMMENT ON COLUMN onthedot.workflow_run_steps.completed_at IS 'When it was found to have ended';
---
-- The executions of a step, live or ended, by the beginning of their run_key. Others are not in them.
CREATE INDEX executions_step ON onthedot.executions (run_key COLLATE "C") WHERE trigger = 'workflow';
---
CREATE INDEX history_step ON onthedot.execution_history (run_key COLLATE "C") WHERE trigger = 'workflow';
---
CREATE VIEW audit.workflow_runs AS
SELECT r.workflow_run_id, r.workflow_id, j.name, r.user_id, r.status, r.trigger, r.scheduled_time, r.started_at,
       r.completed_at, r.deadline_at, r.cause, r.parameters, r.version, r.shard
  FROM onthedot.workflow_runs AS r
  LEFT JOIN onthedot.jobs AS j ON j.shard = r.shard AND j.job_id = r.workflow_id;
---
COMMENT ON VIEW audit.workflow_runs IS 'Runs of workflows';
---
CREATE VIEW audit.workflow_run_steps AS
SELECT s.workflow_run_id, r.workflow_id, s.step, d.definition ->> 'task_id' AS task_id, s.status, s.cause, s.round,
       s.instances, s.released_at, s.completed_at, d.definition -> 'depends_on' AS depends_on, s.shard
  FROM onthedot.workflow_run_steps AS s
  JOIN onthedot.workflow_runs AS r ON r.shard = s.shard AND r.workflow_run_id = s.workflow_run_id
  LEFT JOIN onthedot.workflow_definitions AS w
    ON w.shard = r.shard AND w.workflow_id = r.workflow_id AND w.version = r.version
  LEFT JOIN LATERAL (SELECT one AS definition FROM jsonb_array_elements(w.steps) AS one WHERE one ->> 'key' = s.step) AS d
    ON true;
---
COMMENT ON VIEW audit.workflow_run_steps IS 'Steps of runs, with what they are to do and what has become of them'
---
COMMENT ON COLUMN audit.workflow_runs.workflow_run_id IS 'The run'
---
COMMENT ON COLUMN audit.workflow_runs.workflow_id IS 'The workflow'
---
COMMENT ON COLUMN audit.workflow_runs.name IS 'The workflow''s name'
---
COMMENT ON COLUMN audit.workflow_runs.user_id IS 'Whose it is'
---
COMMENT ON COLUMN audit.workflow_runs.status IS 'RUNNING until every step has ended; FAILED if one has failed'
---
COMMENT ON COLUMN audit.workflow_runs.trigger IS 'What brought it about'
---
COMMENT ON COLUMN audit.workflow_runs.scheduled_time IS 'The instant that it was asked for'
---
COMMENT ON COLUMN audit.workflow_runs.started_at IS 'When it began'
---
COMMENT ON COLUMN audit.workflow_runs.completed_at IS 'When its last step had ended'
---
COMMENT ON COLUMN audit.workflow_runs.deadline_at IS 'When it is stopped if it is not over; null: never'
---
COMMENT ON COLUMN audit.workflow_runs.cause IS 'Why it was stopped, or never began'
---
COMMENT ON COLUMN audit.workflow_runs.parameters IS 'What steps refer to as parameters'
---
COMMENT ON COLUMN audit.workflow_runs.version IS 'The version of the definition that it was begun with'
---
COMMENT ON COLUMN audit.workflow_runs.shard IS 'Where it lies'
---
COMMENT ON COLUMN audit.workflow_run_steps.workflow_run_id IS 'The run'
---
COMMENT ON COLUMN audit.workflow_run_steps.workflow_id IS 'The workflow'
---
COMMENT ON COLUMN audit.workflow_run_steps.step IS 'The step''s key'
---
COMMENT ON COLUMN audit.workflow_run_steps.task_id IS 'What it runs'
---
COMMENT ON COLUMN audit.workflow_run_steps.status IS 'BLOCKED: it waits for those before it; RUNNING: it has live executions; else how it ended'
---
COMMENT ON COLUMN audit.workflow_run_steps.cause IS 'Why it did not complete'
---
COMMENT ON COLUMN audit.workflow_run_steps.round IS 'How often it has begun'
---
COMMENT ON COLUMN audit.workflow_run_steps.instances IS 'Executions of this round'
---
COMMENT ON COLUMN audit.workflow_run_steps.released_at IS 'When it began to wait for a worker'
---
COMMENT ON COLUMN audit.workflow_run_steps.completed_at IS 'When it had ended'
---
COMMENT ON COLUMN audit.workflow_run_steps.depends_on IS 'The steps before it'
---
COMMENT ON COLUMN audit.workflow_run_steps.shard IS 'Where it lies'
---
CREATE OR REPLACE VIEW audit.executions AS
SELECT e.execution_id, e.job_id, j.name AS job_name, e.task_id, e.user_id, e.queue, e.priority,
       e.status, e.disposition, e.trigger, e.scheduled_time, e.first_due_at, e.due_at, e.claimed_at,
       e.started_at, e.completed_at, e.lateness_ms, e.attempt_number, e.max_attempts, e.worker_id,
       w.host AS worker_host, e.lease_expires_at, e.parameters, e.result, e.result_truncated,
       e.error ->> 'type' AS error_type, e.error ->> 'message' AS error_details, e.error,
       (SELECT jsonb_agg(jsonb_build_object('attempt_number', a.attempt_number, 'worker_id', a.worker_id,
                         'started_at', a.started_at, 'ended_at', a.ended_at, 'outcome', a.outcome,
                         'error', a.error ->> 'message') ORDER BY a.attempt_number, a.lease_epoch)
          FROM onthedot.attempts a WHERE a.execution_id = e.execution_id) AS earlier_attempts,
       (SELECT string_agg(format('#%s %s %s', l.attempt_number, l.level, l.message), E'\n'
                          ORDER BY l.attempt_number, l.sequence)
          FROM onthedot.execution_logs l WHERE l.execution_id = e.execution_id) AS log,
       e.retried_from, e.lease_epoch, e.shard, e.worker_deaths,
       CASE WHEN e.trigger = 'workflow' THEN split_part(substr(e.run_key, 3), '/', 1)::uuid END AS workflow_run_id,
       CASE WHEN e.trigger = 'workflow' THEN split_part(e.run_key, '/', 2) END AS step
  FROM (SELECT shard, execution_id, job_id, user_id, task_id, queue, priority, status,
               'pending' AS disposition, trigger, run_key, retried_from, scheduled_time, first_due_at, due_at,
               parameters, max_attempts, attempt_number, lease_epoch, worker_id, lease_expires_at,
               claimed_at, coalesce(started_at, CASE WHEN status = 'RUNNING' THEN claimed_at END) AS started_at,
               NULL::timestamptz AS completed_at, lateness_ms,
               NULL::jsonb AS result, false AS result_truncated, error, worker_deaths
          FROM onthedot.executions
        UNION ALL
        SELECT shard, execution_id, job_id, user_id, task_id, queue, priority, status,
               disposition, trigger, run_key, retried_from, scheduled_time, first_due_at, due_at,
               parameters, max_attempts, attempt_number, lease_epoch, worker_id, NULL::timestamptz,
               claimed_at, started_at, completed_at, lateness_ms,
               result, result_truncated, error, worker_deaths
          FROM onthedot.execution_history) e
  LEFT JOIN onthedot.jobs j ON j.shard = e.shard AND j.job_id = e.job_id
  LEFT JOIN onthedot.workers w ON w.worker_id = e.worker_id
---
COMMENT ON COLUMN audit.executions.workflow_run_id IS 'The workflow run whose step it is; null: of none'
---
COMMENT ON COLUMN audit.executions.step IS 'The step''s key'
---
CREATE VIEW audit.workflow_definitions AS
SELECT workflow_id, version, steps, overlap, deadline_seconds, created_by, created_at, shard
  FROM onthedot.workflow_definitions
---
COMMENT ON VIEW audit.workflow_definitions IS 'What the runs of workflows are or were made of, version by version'
---
COMMENT ON COLUMN audit.workflow_definitions.workflow_id IS 'The workflow'
---
COMMENT ON COLUMN audit.workflow_definitions.version IS 'Counts from 1; the highest holds for new runs'
---
COMMENT ON COLUMN audit.workflow_definitions.steps IS 'The steps: key, task_id, parameters, depends_on, when, map, …'
---
COMMENT ON COLUMN audit.workflow_definitions.overlap IS 'What becomes of a run that is due while another one is under way'
---
COMMENT ON COLUMN audit.workflow_definitions.deadline_seconds IS 'How long a run may take; null: as long as it takes'
---
COMMENT ON COLUMN audit.workflow_definitions.created_by IS 'Who defined it so'
---
COMMENT ON COLUMN audit.workflow_definitions.created_at IS 'When'
---
COMMENT ON COLUMN audit.workflow_definitions.shard IS 'Where it lies'
