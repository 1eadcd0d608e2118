-- Most of what a claim and a settlement wrote were index entries. What a batch begins with is found by the ids of these
-- executions, which lie together: only what was run again has to be found by the batch. Ids sort by time, and these are
-- made after the batch's own and before it is stored. The defaults are for processes of the version before, which go on
-- until they are replaced.
ALTER TABLE onthedot.batches
  ADD COLUMN first_execution_id uuid NOT NULL
      DEFAULT (lpad(to_hex((1000 * extract(epoch FROM now() - interval '5 min'))::bigint), 12, '0') || repeat('0', 20))::uuid,
  ADD COLUMN last_execution_id uuid NOT NULL
      DEFAULT (lpad(to_hex((1000 * extract(epoch FROM now() + interval '1 min'))::bigint), 12, '0') || repeat('0', 20))::uuid;
---
UPDATE onthedot.batches
   SET first_execution_id = (lpad(to_hex(('x' || replace(left(batch_id::text, 13), '-', ''))::bit(48)::bigint - 1000), 12, '0')
                             || repeat('0', 20))::uuid,
       last_execution_id = (lpad(to_hex((1000 * extract(epoch FROM created_at + interval '1 s'))::bigint), 12, '0')
                            || repeat('0', 20))::uuid;
---
COMMENT ON COLUMN onthedot.batches.first_execution_id IS
    'Least id of the executions that it began with: those with its batch_id and run_key '''' lie between';
---
COMMENT ON COLUMN onthedot.batches.last_execution_id IS 'Greatest id of the executions that it began with';
---
-- What is leased is in executions_lease, no more than the workers carry; lists sort it. Most is leased for milliseconds.
CREATE INDEX executions_unleased ON onthedot.executions (scheduled_time, execution_id)
    WHERE status IN ('BLOCKED', 'PENDING', 'RETRYING');
---
CREATE INDEX executions_unleased_user ON onthedot.executions (user_id, scheduled_time, execution_id)
    WHERE status IN ('BLOCKED', 'PENDING', 'RETRYING');
---
CREATE INDEX executions_ran_again ON onthedot.executions (batch_id) WHERE batch_id IS NOT NULL AND run_key <> '';
---
CREATE INDEX history_ran_again ON onthedot.execution_history (batch_id) WHERE batch_id IS NOT NULL AND run_key <> '';
---
-- Last, as nobody reads from then on until all is done.
DROP INDEX onthedot.executions_newest, onthedot.executions_user, onthedot.executions_batch, onthedot.history_batch;
---
ALTER INDEX onthedot.executions_unleased RENAME TO executions_newest;
---
ALTER INDEX onthedot.executions_unleased_user RENAME TO executions_user;
---
ALTER INDEX onthedot.executions_ran_again RENAME TO executions_batch;
---
ALTER INDEX onthedot.history_ran_again RENAME TO history_batch;
---
-- As in 0014, but for the live half, whose order is in two indexes now.
CREATE OR REPLACE VIEW audit.late_executions AS
SELECT e.execution_id, e.job_id, e.task_id, e.user_id, e.queue, e.priority, e.status, e.scheduled_time,
       e.first_due_at, e.first_due_at + make_interval(secs => e.lateness_ms / 1000) AS first_started_at,
       e.lateness_ms, coalesce(q.max_delay_ms, 2000) AS max_delay_ms, e.attempt_number, e.completed_at, e.shard
  FROM (SELECT shard, execution_id, job_id, task_id, user_id, queue, priority, status, scheduled_time, first_due_at,
               coalesce(lateness_ms,
                        CASE WHEN NOT limited
                             THEN 1000 * extract(epoch FROM coalesce(started_at, claimed_at) - first_due_at)::float8 END)
                   AS lateness_ms,
               attempt_number, NULL::timestamptz AS completed_at
          FROM (SELECT *
                  FROM onthedot.executions
                 WHERE status IN ('BLOCKED', 'PENDING', 'RETRYING')
                   AND scheduled_time < now() + interval '1 minute'  -- a million lie beyond
                UNION ALL
                SELECT *
                  FROM onthedot.executions
                 WHERE status IN ('SCHEDULED', 'RUNNING')) AS live
         WHERE attempt_number >= 1
        UNION ALL
        SELECT shard, execution_id, job_id, task_id, user_id, queue, priority, status, scheduled_time, first_due_at,
               lateness_ms, attempt_number, completed_at
          FROM onthedot.execution_history) AS e
  LEFT JOIN onthedot.queues AS q ON q.queue = e.queue
 WHERE e.lateness_ms > coalesce(q.max_delay_ms, 2000);
---
-- A partition that was empty for a moment is full again in the next. To give its pages back VACUUM waits up to five
-- seconds for a lock that claims hold all the time, and what is dead in other partitions waits meanwhile.
DO $$ BEGIN
    FOR i IN 0..15 LOOP
        EXECUTE format('ALTER TABLE onthedot.executions_p%s SET (vacuum_truncate = false)', lpad(i::text, 2, '0'));
    END LOOP;
END $$;
---
-- ANALYZE looked at 30,000 rows of a partition, column by column, for a third of a second: while jobs came in by the
-- thousand it took a tenth of all processor time. No statement asks for what most of the columns are like.
DO $$
DECLARE
    it record;
BEGIN
    FOR it IN SELECT c.table_name, c.column_name,
                     CASE WHEN c.column_name IN ('shard', 'execution_id', 'job_id', 'user_id', 'task_id', 'queue', 'priority',
                                                 'status', 'disposition', 'trigger', 'run_key', 'scheduled_time',
                                                 'completed_at', 'started_at', 'lateness_ms', 'created_at', 'schedule_type',
                                                 'is_active', 'materialize_at', 'depends_on') THEN 10 ELSE 0 END AS target
                FROM information_schema.columns AS c
               WHERE c.table_schema = 'onthedot' AND c.table_name IN ('jobs', 'execution_history') LOOP
        EXECUTE format('ALTER TABLE onthedot.%I ALTER COLUMN %I SET STATISTICS %s', it.table_name, it.column_name, it.target);
    END LOOP;
END $$;
---
-- Where rows are only added, VACUUM notes which pages everybody may see while they are in memory still: by default it
-- waited until the table had grown by a fifth, then read them again and wrote each of them to the log whole.
DO $$
DECLARE
    it regclass;
BEGIN
    FOR it IN SELECT relid FROM unnest(ARRAY['jobs', 'execution_history', 'attempts', 'execution_logs']) AS t (name),
                               pg_partition_tree(('onthedot.' || name)::regclass) WHERE isleaf LOOP
        EXECUTE format('ALTER TABLE %s SET (autovacuum_vacuum_insert_threshold = 20000,'
                       ' autovacuum_vacuum_insert_scale_factor = 0, autovacuum_analyze_scale_factor = 0.4)', it);
    END LOOP;
END $$;
