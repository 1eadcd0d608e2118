"""A session that listens and does not end its transaction lets PostgreSQL's queue of notifications fill: then NOTIFY
fails for everybody. Nothing else may."""

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import closing

import asyncpg
import psycopg
import pytest

from app.db.engine import open_engine
from app.db.notifier import HintListener, HintSender
from app.db.open_transactions import OpenTransactions
from app.db.pools import Pool, open_pool
from app.db.stores.jobs import JobStore, Submission
from app.domain.access import Actor
from app.domain.hints import Ready
from app.intake.group_commit import GroupCommit
from app.maintenance.transaction_watch import TransactionWatch
from tests.api.conftest import add_user
from tests.chaos.server import ChaosServer
from tests.factories import make_task, new_job, now_of

SETTINGS = {"max_notify_queue_pages": "64", "fsync": "off"}
"""The smallest queue that there is."""
FILL = "SELECT pg_notify('crowded', repeat('x', 7000) || n) FROM generate_series(1, 20) AS n"
LISTENER = "SELECT state FROM pg_stat_activity WHERE application_name = 'onthedot listener'"

Session = psycopg.Connection[tuple[object, ...]]


@pytest.fixture(scope="module")
def dsn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return a migrated database on a server of its own: the queue is one for all databases of a server."""
    server = ChaosServer.create(tmp_path_factory.mktemp("full") / "server", settings=SETTINGS)
    server.migrate()
    yield server.dsn
    server.destroy()


@pytest.fixture
async def pool(dsn: str) -> AsyncIterator[Pool]:
    async with await open_pool(dsn, size=2, application_name="test") as opened:
        yield opened


@pytest.fixture
def stuck(dsn: str, pool: Pool) -> Iterator[Session]:
    """Return the session that listens in a transaction; the queue is full."""
    assert pool
    with closing(psycopg.connect(dsn, application_name="stuck")) as listener:
        listener.execute("LISTEN crowded")
        listener.commit()
        listener.execute("SELECT 1")
        with psycopg.connect(dsn, autocommit=True) as sender, pytest.raises(psycopg.Error, match="too many"):
            fill(sender)
        yield listener
    with psycopg.connect(dsn) as anybody:
        anybody.execute("SELECT pg_notification_queue_usage()")


def fill(sender: Session) -> None:
    """Notify until PostgreSQL says that it cannot."""
    while True:
        sender.execute(FILL)


async def test_jobs_are_taken_in_and_only_the_hint_is_lost(
    pool: Pool, stuck: Session, caplog: pytest.LogCaptureFixture
) -> None:
    assert stuck
    await make_task(pool)
    await add_user(pool, "ada", role="operator")
    hints, job = HintSender(pool), await new_job(pool)

    stored = await GroupCommit(JobStore(pool)).submit(Submission(jobs=[job], actor=Actor("user:ada")))
    hints.announce([Ready(job.shard, "general", 2, await now_of(pool))])
    await hints.close()
    enqueued = await pool.fetchval("SELECT onthedot.enqueue('report')")

    assert job.job_id in stored.lanes
    assert enqueued is not None
    assert await pool.fetchval("SELECT count(*) FROM onthedot.executions WHERE status = 'PENDING'") == 2
    assert [record.event for record in caplog.records if hasattr(record, "event")] == ["hints_not_sent"]


async def test_whoever_is_stuck_is_named(dsn: str, stuck: Session, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    engine = open_engine(dsn, size=1, application_name="test")
    watch = TransactionWatch(OpenTransactions(engine))

    await watch.tick()
    await watch.tick()
    await engine.dispose()

    [warning] = [record for record in caplog.records if getattr(record, "event", "") == "notification_queue"]
    assert f"PID {stuck.info.backend_pid}, 'stuck' as " in warning.getMessage()


async def test_once_nobody_is_stuck_any_more_the_watch_frees_it(dsn: str, pool: Pool, stuck: Session) -> None:
    engine = open_engine(dsn, size=1, application_name="test")
    stuck.close()
    with pytest.raises(asyncpg.PostgresError, match="too many"):
        await pool.execute(FILL)

    await TransactionWatch(OpenTransactions(engine)).tick()
    await engine.dispose()

    await pool.execute(FILL)


async def test_our_own_listeners_are_in_no_transaction(dsn: str, pool: Pool) -> None:
    listener = HintListener(dsn, on_ready=lambda _places: None, on_schedules=lambda: None)
    await listener.tick()

    assert await pool.fetchval(LISTENER) == "idle"
    assert await pool.fetchval("SHOW idle_in_transaction_session_timeout") == "1min"
    await listener.close()
