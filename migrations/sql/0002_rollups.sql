-- What lists and figures over millions of finished executions are read from. PostgreSQL 15 to 18.

CREATE TABLE onthedot.rollups (
    grain_seconds   integer NOT NULL CHECK (grain_seconds IN (60, 900)),
    bucket          timestamptz NOT NULL,
    queue           text NOT NULL,
    task_id         text NOT NULL,
    status          text NOT NULL CHECK (status IN ('COMPLETED', 'FAILED', 'CANCELLED', 'SKIPPED')),
    executions      bigint NOT NULL CHECK (executions > 0),
    late            bigint NOT NULL CHECK (late BETWEEN 0 AND executions),
    lateness_ms_sum double precision NOT NULL,
    lateness_ms_max double precision,
    run_ms_sum      double precision NOT NULL,
    PRIMARY KEY (grain_seconds, bucket, queue, task_id, status)
);
---
CREATE INDEX rollups_task ON onthedot.rollups (task_id, grain_seconds, bucket);
---
COMMENT ON TABLE onthedot.rollups IS
    'Finished executions counted by the time they ended, queue, task and status. What is written more than 15 s after it ended is not in here: rates, not the books';
---
COMMENT ON COLUMN onthedot.rollups.grain_seconds IS 'Length of the bucket: 60, kept for a day, or 900, kept as long as finished executions';
---
COMMENT ON COLUMN onthedot.rollups.bucket IS 'When the bucket begins';
---
COMMENT ON COLUMN onthedot.rollups.queue IS 'Queue of the executions';
---
COMMENT ON COLUMN onthedot.rollups.task_id IS 'Task of the executions';
---
COMMENT ON COLUMN onthedot.rollups.status IS 'How they ended';
---
COMMENT ON COLUMN onthedot.rollups.executions IS 'How many';
---
COMMENT ON COLUMN onthedot.rollups.late IS 'How many of them started later than their queue promises';
---
COMMENT ON COLUMN onthedot.rollups.lateness_ms_sum IS 'Their lateness in ms together; divide by executions';
---
COMMENT ON COLUMN onthedot.rollups.lateness_ms_max IS 'The greatest lateness in ms; null: none started';
---
COMMENT ON COLUMN onthedot.rollups.run_ms_sum IS 'How long they ran in ms together, each one''s last attempt';
---
CREATE TABLE onthedot.rollup_state (
    only_row     boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    rolled_until timestamptz NOT NULL
);
---
INSERT INTO onthedot.rollup_state (rolled_until) VALUES (now());
---
COMMENT ON TABLE onthedot.rollup_state IS
    'One row. To count anew what ended since an instant: DELETE FROM rollups WHERE bucket >= it, and set rolled_until to it, both at a full quarter of an hour';
---
COMMENT ON COLUMN onthedot.rollup_state.only_row IS 'There is one row';
---
COMMENT ON COLUMN onthedot.rollup_state.rolled_until IS 'What ended before this is counted in rollups';
---
-- Lists of what failed, was cancelled or was skipped, over all jobs: each in the order in which lists are read.
CREATE INDEX history_status ON onthedot.execution_history (status, scheduled_time, execution_id)
    WHERE status <> 'COMPLETED';
---
-- What completed late, in the order in which lists are read: a few of many.
CREATE INDEX history_late ON onthedot.execution_history (scheduled_time, execution_id) WHERE disposition = 'late';
---
SELECT onthedot.ensure_roles();
