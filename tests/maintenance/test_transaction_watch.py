"""Whoever keeps others from their work is named: once, and only if it is so."""

import logging
from collections.abc import Iterator

import psycopg
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.open_transactions import OpenTransactions
from app.db.pools import Pool
from app.maintenance.transaction_watch import TransactionWatch
from tests.factories import make_execution

Session = psycopg.Connection[tuple[object, ...]]


@pytest.fixture
def session(dsn: str) -> Iterator[Session]:
    """Return a session of somebody at a prompt."""
    with psycopg.connect(dsn, application_name="a report") as made:
        yield made


@pytest.fixture
def watch(engine: AsyncEngine, caplog: pytest.LogCaptureFixture) -> TransactionWatch:
    caplog.set_level(logging.INFO, logger="app.maintenance.transaction_watch")
    return TransactionWatch(OpenTransactions(engine))


def events(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what was logged since the last time."""
    found = [record.event for record in caplog.records if hasattr(record, "event")]
    caplog.clear()
    return found


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM onthedot.executions WHERE status = 'PENDING' FOR UPDATE",
        "LOCK TABLE onthedot.jobs IN EXCLUSIVE MODE",
    ],
)
async def test_a_session_that_keeps_locks_is_named_once_and_its_end_is_told(
    watch: TransactionWatch, pool: Pool, session: Session, caplog: pytest.LogCaptureFixture, statement: str
) -> None:
    await make_execution(pool)
    session.execute(statement)

    await watch.tick()
    assert events(caplog) == [], "nobody has waited for it yet"
    await watch.tick()
    assert f"PID {session.info.backend_pid}, 'a report' as " in caplog.text
    assert events(caplog) == ["transaction_stays_open"]
    await watch.tick()
    assert events(caplog) == []
    session.rollback()
    await watch.tick()
    assert events(caplog) == ["transaction_ended"]


@pytest.mark.parametrize("statement", ["SELECT * FROM onthedot.executions", "SELECT 1 FOR UPDATE"])
async def test_who_only_reads_is_in_nobodys_way(
    watch: TransactionWatch, session: Session, caplog: pytest.LogCaptureFixture, statement: str
) -> None:
    session.execute(statement)

    await watch.tick()
    await watch.tick()

    assert events(caplog) == []


async def test_transactions_that_end_are_not_taken_for_one_that_does_not(
    watch: TransactionWatch, pool: Pool, session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    await make_execution(pool)
    for _ in range(3):
        session.execute("SELECT * FROM onthedot.executions FOR UPDATE")
        await watch.tick()
        session.rollback()

    assert events(caplog) == []
