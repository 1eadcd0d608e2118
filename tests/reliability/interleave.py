"""Every order in which the steps of several sessions can happen, on a real PostgreSQL.

A session is a connection with one transaction of two steps: its statement, and its commit. A step that waits for
another session's lock is noticed by `pg_blocking_pids`; orders that would need a waiting session to go on are left
out, because they cannot happen.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import asyncpg

from app.db.pools import Connection

Statement = Callable[[Connection], Awaitable[list[asyncpg.Record]]]
POLL_SECONDS = 0.001
STEPS = 2


@dataclass
class Session:
    """One connection and how many rows its statement returned."""

    connection: Connection
    statement: Statement
    rows: int = 0
    ended: bool = False
    pending: "asyncio.Task[None] | None" = None
    transaction: Any = field(default=None)

    @property
    def waits(self) -> bool:
        """Tell whether a step is under way; only a lock of another session keeps it there."""
        return self.pending is not None and not self.pending.done()

    def take_step(self) -> None:
        """Begin the next step."""
        step = self._begin_and_run if self.transaction is None else self._commit
        self.pending = asyncio.create_task(step())

    async def roll_back(self) -> None:
        """Undo what has been done, if it is not committed."""
        if self.transaction is not None and not self.ended:
            self.ended = True
            await self.transaction.rollback()

    async def _begin_and_run(self) -> None:
        self.transaction = self.connection.transaction()
        await self.transaction.start()
        self.rows = len(await self.statement(self.connection))

    async def _commit(self) -> None:
        self.ended = True
        await self.transaction.commit()


def orders(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield every merge of sessions' steps; those that begin alike follow each other."""
    return _merges(dict.fromkeys(names, STEPS))


def _merges(left: Mapping[str, int]) -> Iterator[tuple[str, ...]]:
    left = {name: steps for name, steps in left.items() if steps}
    if not left:
        yield ()
    for name, steps in left.items():
        for rest in _merges({**left, name: steps - 1}):
            yield (name, *rest)


async def run_order(
    order: Sequence[str], sessions: Mapping[str, Session], monitor: Connection
) -> tuple[str, ...] | None:
    """Take the steps in this order; return None, or the beginning that makes the order impossible."""
    for position, name in enumerate(order, start=1):
        if sessions[name].waits:
            await _abandon(sessions.values())
            return tuple(order[:position])
        sessions[name].take_step()
        await _settle([sessions[name]], sessions.values(), monitor)
        if sessions[name].ended:  # only a commit lets others go on
            await _settle([each for each in sessions.values() if each.waits], sessions.values(), monitor)
    assert not any(session.waits for session in sessions.values()), f"nobody is left to wait for: {order}"
    return None


async def _settle(waiting: list[Session], sessions: Iterable[Session], monitor: Connection) -> None:
    """Return when each of these either is done or waits for another session.

    One that goes on may let another one go on, which was found waiting for it: hence again, until none does.
    """
    while waiting:
        for session in waiting:
            await _done_or_waiting(session, sessions, monitor)
        still = [session for session in waiting if session.waits]
        if still == waiting:
            return
        waiting = still


async def _done_or_waiting(session: Session, sessions: Iterable[Session], monitor: Connection) -> None:
    # Only for the others here: whoever inserts side by side waits a moment for the lock by which a table grows.
    others = [each.connection.get_server_pid() for each in sessions]
    pid = session.connection.get_server_pid()
    assert session.pending is not None
    while True:
        done, _ = await asyncio.wait({session.pending}, timeout=POLL_SECONDS)
        if done:
            session.pending.result()
            return
        if await monitor.fetchval("SELECT pg_blocking_pids($1) && $2::int[]", pid, others):
            return


async def _abandon(sessions: Iterable[Session]) -> None:
    """Roll back what an impossible order has left behind: whoever waits goes on once the others are gone."""
    left = [session for session in sessions if session.transaction is not None]
    while left:
        for session in left:
            if not session.waits:
                await session.roll_back()
        left = [session for session in left if not session.ended]
        if left:
            await asyncio.wait(
                [session.pending for session in left if session.pending], return_when=asyncio.FIRST_COMPLETED
            )
