"""Every order in which the steps of several sessions can happen, on a real PostgreSQL.

A session is a connection with one transaction of two steps: its statement, and its commit. A step that waits for
another session's lock is noticed by `pg_blocking_pids`; orders that would need a waiting session to go on are left
out, because they cannot happen.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import asyncpg

from app.db.pools import Connection

Statement = Callable[[Connection], Awaitable[list[asyncpg.Record]]]
POLL_SECONDS = 0.002


@dataclass
class Session:
    """One connection and what its statement returned."""

    connection: Connection
    statement: Statement
    rows: list[asyncpg.Record] | None = None
    committed: bool = False
    pending: "asyncio.Task[None] | None" = None
    transaction: Any = field(default=None)

    async def begin_and_run(self) -> None:
        """Open the transaction and run the statement."""
        self.transaction = self.connection.transaction()
        await self.transaction.start()
        self.rows = await self.statement(self.connection)

    async def commit(self) -> None:
        """Commit."""
        await self.transaction.commit()
        self.committed = True

    async def abandon(self) -> None:
        """Roll back what an impossible order has left behind."""
        if self.pending is not None and not self.pending.done():
            self.pending.cancel()
            await asyncio.gather(self.pending, return_exceptions=True)
        if self.transaction is not None and not self.committed:
            self.connection.terminate()


def orders(names: Mapping[str, int]) -> Iterator[list[str]]:
    """Yield every merge of sessions' steps: names with the number of steps each has."""
    left = {name: steps for name, steps in names.items() if steps}
    if not left:
        yield []
    for name, steps in left.items():
        for rest in orders({**left, name: steps - 1}):
            yield [name, *rest]


async def run_order(order: list[str], sessions: Mapping[str, Session], monitor: Connection) -> bool:
    """Take the steps in this order; return False where the order cannot happen."""
    for name in order:
        session = sessions[name]
        if session.pending is not None and not await _settled(session, monitor):
            return False
        step = session.begin_and_run if session.transaction is None else session.commit
        session.pending = asyncio.create_task(step())
        await _settled(session, monitor)
    for session in sessions.values():
        if session.pending is not None and not await _settled(session, monitor):
            return False
    return True


async def _settled(session: Session, monitor: Connection) -> bool:
    """Wait for the session's step; return False once it is found waiting for another session."""
    assert session.pending is not None
    while True:
        done, _ = await asyncio.wait({session.pending}, timeout=POLL_SECONDS)
        if done:
            session.pending.result()
            return True
        pid = session.connection.get_server_pid()
        if await monitor.fetchval("SELECT pg_blocking_pids($1) <> '{}'", pid):
            return False
