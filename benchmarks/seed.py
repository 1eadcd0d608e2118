"""Fill a database that is already migrated with what pages are looked at and measured on.

    python -m benchmarks.seed "$DSN" --jobs 10000 --finished 1000000 --days 7

Users ada (operator) and viv (viewer) get the keys printed at the end. Everything is made by SQL in the database:
10 million finished executions take some minutes, and maintenance counts them afterwards. Run it on a database of its
own: it is not undone.
"""

import argparse
import asyncio

from app.db.pools import Connection, connect
from app.domain.access import hash_secret
from app.domain.ids import SHARDS

KEYS = {
    "ada": ("operator", "seeded-key-of-ada-00000000000000000"),
    "viv": ("viewer", "seeded-key-of-viv-00000000000000000"),
}
TASKS = ("deploy_ios_update", "sync_catalogue", "transcode_video", "send_digest", "rotate_keys", "compact_telemetry",
         "rebuild_index", "check_certificates", "export_ledger", "warm_cache")  # fmt: skip
QUEUES = ("critical", "transactional", "general", "bulk", "maintenance")

_SHARD = f"(ARRAY{list(SHARDS)}::smallint[])[get_byte(uuid_send({{id}}), 15) % 16 + 1]"

PEOPLE = """
INSERT INTO onthedot.users (user_id, name, role) VALUES ($1, initcap($1), $2) ON CONFLICT DO NOTHING
"""
KEY = """
INSERT INTO onthedot.api_keys (key_id, user_id, name, prefix, key_hash)
VALUES (gen_random_uuid(), $1, 'seeded', left($2, 10), $3) ON CONFLICT DO NOTHING
"""
TASK = """
INSERT INTO onthedot.tasks (task_id, name, execution_handler, queue, priority, created_by, timeout_seconds)
SELECT $1, initcap(replace($1, '_', ' ')), 'builtin:noop', q.queue, q.priority, 'ada', 600
  FROM onthedot.queues AS q WHERE q.queue = $2
    ON CONFLICT DO NOTHING
"""
JOBS = """
INSERT INTO onthedot.jobs (shard, job_id, user_id, task_id, name, tags, schedule_type, expression, timezone,
                           timezone_requested, every_seconds, starts_at, is_active, pause_reason,
                           materialized_until, materialize_at, created_at)
SELECT shard, id, CASE WHEN n % 5 = 0 THEN 'viv' ELSE 'ada' END, task, replace(task, '_', ' ') || ' ' || n,
       ARRAY['team-' || n % 7], CASE WHEN cron THEN 'RECURRING' ELSE 'INTERVAL' END,
       CASE WHEN cron THEN n % 60 || ' ' || n % 24 || ' * * *' END, zone, zone,
       CASE WHEN NOT cron THEN 3600.0 * (1 + n % 12) END, CASE WHEN NOT cron THEN made END,
       n % 25 <> 0, CASE WHEN n % 25 = 0 THEN 'waits for the new certificate' END,
       now(), CASE WHEN n % 25 <> 0 THEN now() + interval '30 min' END, made
  FROM (SELECT n, id, made, n % 3 > 0 AS cron, ($2::text[])[n % cardinality($2::text[]) + 1] AS task,
               (ARRAY['UTC', 'America/Los_Angeles', 'Europe/Berlin'])[n % 3 + 1] AS zone, {shard} AS shard
          FROM (SELECT n, now() - n * interval '7 s' AS made, onthedot_seed.job(n) AS id
                  FROM generate_series(1, $1) AS n) AS numbered) AS made
    ON CONFLICT DO NOTHING
"""
FINISHED = """
INSERT INTO onthedot.execution_history
       (shard, execution_id, job_id, user_id, task_id, queue, priority, status, disposition, trigger, run_key,
        scheduled_time, due_at, first_due_at, parameters, max_attempts, attempt_number, lease_epoch, worker_id,
        claimed_at, started_at, completed_at, lateness_ms, result, error)
SELECT {shard}, id, job, CASE WHEN job_n % 5 = 0 THEN 'viv' ELSE 'ada' END, task, queue, 2,
       CASE WHEN failed THEN 'FAILED' ELSE 'COMPLETED' END,
       CASE WHEN failed THEN 'failed' WHEN late > 2000 THEN 'late' ELSE 'ran' END, 'schedule', '',
       due, due, due, '{{}}', 4, CASE WHEN failed THEN 4 ELSE 1 END, 1, gen_random_uuid(),
       due, due + late * interval '1 ms', due + (late + ran) * interval '1 ms', late, '{{"ok": true}}',
       CASE WHEN failed THEN jsonb_build_object('type', 'TimeoutError', 'message', 'no answer from 10.0.0.' || n % 9,
            'category', 'network', 'severity', 'medium', 'fingerprint', 'f' || n % 9, 'traceback', null) END
  FROM (SELECT n, job_n, onthedot_seed.job(job_n) AS job,
               onthedot_seed.execution(due, n, onthedot_seed.job(job_n)) AS id,
               ($4::text[])[job_n % cardinality($4::text[]) + 1] AS task,
               ($5::text[])[job_n % cardinality($5::text[]) + 1] AS queue, due,
               n % 97 = 0 AS failed, 3 + n % 40 + CASE WHEN n % 331 = 0 THEN 4000 ELSE 0 END AS late,
               50 + n % 1900 AS ran
          FROM (SELECT n, 1 + n % $3 AS job_n,
                       now() - interval '3 s' - (n::float8 / $2) * ($6 * interval '1 day') AS due
                  FROM generate_series($1::int, $7::int) AS n) AS numbered) AS made
 WHERE due + (late + ran) * interval '1 ms' < now()
"""
HELPERS = """
CREATE SCHEMA IF NOT EXISTS onthedot_seed;
CREATE OR REPLACE FUNCTION onthedot_seed.job(n int) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
    SELECT ('0190' || substr(md5('job' || n), 1, 8) || '7' || substr(md5('job' || n), 9, 3) || '8'
            || substr(md5('job' || n), 12, 15))::uuid $$;
CREATE OR REPLACE FUNCTION onthedot_seed.execution(at timestamptz, n int, job uuid) RETURNS uuid
LANGUAGE sql STABLE AS $$
    SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || substr(md5('run' || n), 1, 3)
            || '8' || substr(md5('run' || n), 4, 13) || right(job::text, 2))::uuid $$;
"""
PARTITIONS = """
DO $$ DECLARE day date; BEGIN
    FOR back IN 0..%d LOOP
        day := (now() AT TIME ZONE 'UTC')::date - back;
        IF to_regclass('onthedot.execution_history_' || to_char(day, 'YYYYMMDD')) IS NULL THEN
            EXECUTE format('CREATE TABLE onthedot.execution_history_%%s PARTITION OF onthedot.execution_history
                            FOR VALUES FROM (%%L) TO (%%L)', to_char(day, 'YYYYMMDD'), day || 'Z', day + 1 || 'Z');
        END IF;
    END LOOP;
END $$
"""
COUNT_ANEW = """
WITH begin AS (UPDATE onthedot.rollup_state
                  SET rolled_until = date_bin('15 min', now() - make_interval(days => $1::int), '2000-01-01Z')
            RETURNING rolled_until)
DELETE FROM onthedot.rollups USING begin WHERE bucket >= rolled_until
"""
BATCH = 500_000


async def seed(dsn: str, *, jobs: int, finished: int, days: int) -> None:
    """Fill the database."""
    connection = await connect(dsn, application_name="seed")
    await connection.execute(HELPERS)
    for user, (role, key) in KEYS.items():
        await connection.execute(PEOPLE, user, role)
        await connection.execute(KEY, user, key, hash_secret(key))
    for i, task in enumerate(TASKS):
        await connection.execute(TASK, task, QUEUES[i % len(QUEUES)])
    await connection.execute(JOBS.format(shard=_SHARD.format(id="id")), jobs, list(TASKS))
    await connection.execute(PARTITIONS % (days + 1))
    await _finish(connection, jobs=jobs, finished=finished, days=days)
    await connection.execute(COUNT_ANEW, days)
    await connection.execute("ANALYZE")
    await connection.close()


async def _finish(connection: Connection, *, jobs: int, finished: int, days: int) -> None:
    for first in range(1, finished + 1, BATCH):
        last = min(first + BATCH - 1, finished)
        statement = FINISHED.format(shard=_SHARD.format(id="job"))
        await connection.execute(
            statement, first, finished, jobs, list(TASKS), list(QUEUES), days, last, timeout=3600
        )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dsn")
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--finished", type=int, default=100_000)
    parser.add_argument("--days", type=int, default=7)
    given = parser.parse_args()
    asyncio.run(seed(given.dsn, jobs=given.jobs, finished=given.finished, days=given.days))
    for user, (role, key) in KEYS.items():
        print(f"{user} ({role}): {key}")


if __name__ == "__main__":
    main()
