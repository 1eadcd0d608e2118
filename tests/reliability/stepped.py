"""Every order in which the statements of several sessions can happen, of code that runs as it is shipped.

A session is a coroutine with a pool of one connection that stops before each of its statements until it is told to go
on. Orders are found while they are run: a session that waits for a lock of another one is noticed by
`pg_blocking_pids` and goes on when it can, and how many statements a session has may depend on the others.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from app.db.connection import StrictConnection
from app.db.pools import Connection, Pool

POLL_SECONDS = 0.001
Act = Callable[[Pool], Awaitable[object]]


class SteppedConnection(StrictConnection):
    """Waits before each statement until somebody opens its gate; without a gate it waits for nobody."""

    __slots__ = ("gate",)

    async def execute(self, query: str, *args: Any, **more: Any) -> str:
        """Run a statement when it is its turn."""
        if not args:  # else it comes below
            await _turn(self, query)
        return await super().execute(query, *args, **more)

    async def _execute(self, query: str, *args: Any, **more: Any) -> Any:
        await _turn(self, query)
        return await super()._execute(query, *args, **more)  # type: ignore[misc]  # below fetch and its like


async def _turn(connection: SteppedConnection, query: str) -> None:
    gate: Gate | None = getattr(connection, "gate", None)
    if gate is not None and not query.startswith("BEGIN"):  # which does nothing yet
        await gate.pass_through()


class Gate:
    """Where a session stops before each statement."""

    def __init__(self) -> None:
        self._asks, self._may = asyncio.Event(), asyncio.Event()

    @property
    def is_asked(self) -> bool:
        """Tell whether a session stands before it."""
        return self._asks.is_set()

    def open(self) -> None:
        """Let one statement through."""
        self._asks.clear()
        self._may.set()

    async def pass_through(self) -> None:
        """Wait for one's turn."""
        self._asks.set()
        await self._may.wait()
        self._may.clear()


class Session:
    """A coroutine that goes on statement by statement."""

    def __init__(self, pool: Pool, pid: int, gate: Gate, act: Act) -> None:
        self.pid, self.gate = pid, gate
        self.task = asyncio.ensure_future(act(pool))

    @property
    def stands(self) -> bool:
        """Tell whether its next statement may be begun."""
        return not self.task.done() and self.gate.is_asked


class Bench:
    """Connections for sessions, and one that watches them."""

    def __init__(self, pools: Sequence[Pool], monitor: Connection) -> None:
        self._pools, self._monitor = pools, monitor

    async def run(self, acts: Sequence[Act], choices: Sequence[int]) -> tuple[list[int], list[int]]:
        """Run sessions by these choices, and by the first that can go on after these; return what was chosen each
        time, and among how many."""
        sessions = [await self._session(pool, act) for pool, act in zip(self._pools, acts, strict=False)]
        chosen, among = list[int](), list[int]()
        await self._settle(sessions)
        while any(not session.task.done() for session in sessions):
            able = [session for session in sessions if session.stands]
            assert able, "all of them wait"
            choice = choices[len(chosen)] % len(able) if len(chosen) < len(choices) else 0
            chosen.append(choice)
            among.append(len(able))
            able[choice].gate.open()
            await self._settle(sessions)
        for session in sessions:
            session.task.result()
        return chosen, among

    async def _session(self, pool: Pool, act: Act) -> Session:
        gate = Gate()
        async with pool.acquire() as pooled:
            connection: Any = pooled
            pid = connection.get_server_pid()
            inner = connection._con  # a proxy of the one there is
        inner.gate = gate
        return Session(pool, pid, gate, act)

    async def _settle(self, sessions: Sequence[Session]) -> None:
        """Return when each of them has ended, stands before a statement, or waits for another one."""
        pids = [session.pid for session in sessions]
        for session in sessions:
            while not (session.task.done() or session.stands):
                await asyncio.wait({session.task}, timeout=POLL_SECONDS)
                if await self._monitor.fetchval(
                    "SELECT pg_blocking_pids($1) && $2::int[]", session.pid, pids
                ):
                    break


@asynccontextmanager
async def bench(dsn: str, sessions: int) -> AsyncIterator[Bench]:
    """Give a bench for so many sessions at once."""
    pools = [
        await asyncpg.create_pool(
            dsn, min_size=1, max_size=1, connection_class=SteppedConnection, reset=_keep
        )
        for _ in range(sessions)
    ]
    monitor = await asyncpg.connect(dsn)
    try:
        yield Bench(pools, monitor)
    finally:
        await monitor.close()
        for pool in pools:
            await pool.close()


async def _keep(_connection: object) -> None:
    """Reset nothing: that would be statements, too."""


def following(chosen: Sequence[int], among: Sequence[int]) -> list[int] | None:
    """Return the choices of the next order; None: that was the last one."""
    for position in range(len(chosen) - 1, -1, -1):
        if chosen[position] + 1 < among[position]:
            return [*chosen[:position], chosen[position] + 1]
    return None
