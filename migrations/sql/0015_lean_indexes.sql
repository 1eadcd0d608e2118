-- Most of what a claim and a settlement wrote were index entries. A batch's executions are found by the ids of its jobs,
-- which lie together, so that no index has to know the batch.
-- The defaults: a process of the version before, while it is not replaced yet, leaves them out.
ALTER TABLE onthedot.batches
  ADD COLUMN first_job_id uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
  ADD COLUMN last_job_id uuid NOT NULL DEFAULT 'ffffffff-ffff-ffff-ffff-ffffffffffff';
---
-- Ids sort by time; those of a batch's jobs are made after its own, and before it is stored.
UPDATE onthedot.batches
   SET first_job_id = (left(batch_id::text, 13) || '-0000-0000-000000000000')::uuid,
       last_job_id = (lpad(to_hex((1000 * extract(epoch FROM created_at + interval '1 min'))::bigint), 12, '0')
                      || repeat('0', 20))::uuid;
---
COMMENT ON COLUMN onthedot.batches.first_job_id IS 'Least id of its jobs: those with its batch_id lie between';
---
COMMENT ON COLUMN onthedot.batches.last_job_id IS 'Greatest id of its jobs';
---
DROP INDEX onthedot.executions_batch;
---
DROP INDEX onthedot.history_batch;
---
-- What is leased is in executions_lease, no more than the workers carry; lists sort it. Most is leased for milliseconds.
DROP INDEX onthedot.executions_newest;
---
CREATE INDEX executions_newest ON onthedot.executions (scheduled_time, execution_id)
    WHERE status IN ('BLOCKED', 'PENDING', 'RETRYING');
---
DROP INDEX onthedot.executions_user;
---
CREATE INDEX executions_user ON onthedot.executions (user_id, scheduled_time, execution_id)
    WHERE status IN ('BLOCKED', 'PENDING', 'RETRYING');
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
    FOR it IN SELECT relid FROM pg_partition_tree('onthedot.execution_history') WHERE isleaf
              UNION ALL SELECT relid FROM pg_partition_tree('onthedot.jobs') WHERE isleaf LOOP
        EXECUTE format('ALTER TABLE %s SET (autovacuum_vacuum_insert_threshold = 20000,'
                       ' autovacuum_vacuum_insert_scale_factor = 0, autovacuum_analyze_scale_factor = 0.4)', it);
    END LOOP;
END $$;
