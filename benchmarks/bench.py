"""What rows of the benchmark are made with: load put on a house, and figures read from its books."""

import asyncio
import math
import time
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice

import aiohttp
import msgspec

from app.db.pools import Connection
from benchmarks.house import House

BATCH = 10_000
KEYS = 10_000
PATIENCE_SECONDS = 300.0
SURELY_CREATED_A_SECOND = 5_000
"""What is to wait for one instant is created by then on any machine that is worth measuring."""


class Size(msgspec.Struct, frozen=True):
    """How long and how large the rows are; durations in seconds, the rest in jobs or executions."""

    jobs: int
    seconds: int
    soak_seconds: int
    step_seconds: int
    history: int
    spike: int
    recurring: int


SHORT = Size(100_000, 20, 30, 10, 1_000_000, 100_000, 100_000)
FULL = Size(300_000, 60, 300, 60, 20_000_000, 1_000_000, 1_000_000)


class Figure(msgspec.Struct, frozen=True):
    """One thing measured, and what it ought to be."""

    row: str
    what: str
    value: float
    unit: str
    bar: str = ""


class Bench:
    """Puts load on a house and reads from its books what came of it."""

    def __init__(self, house: House, session: aiohttp.ClientSession, database: Connection) -> None:
        self.house = house
        self.session = session
        self.database = database
        self.since: datetime | None = None
        """Figures are of what has ended since then."""

    async def post(self, path: str, body: object) -> dict[str, object]:
        """Send a request that must be granted."""
        async with self.session.post(f"/api/v1{path}", json=body) as answer:
            if answer.status >= 400:
                raise SystemExit(f"POST {path} was answered {answer.status}: {await answer.text()}")
            found: dict[str, object] = await answer.json()
            return found

    async def enqueue(self, task_id: str, number: int, *, queue: str = "general", **schedule: object) -> None:
        """Create jobs by batches; each has one of `KEYS` keys in its parameters."""
        wanted = {"type": "IMMEDIATE"} | schedule
        await self.create(
            {"task_id": task_id, "schedule": wanted, "parameters": {"t": i % KEYS}, "queue": queue}
            for i in range(number)
        )

    async def create(self, jobs: Iterable[dict[str, object]]) -> None:
        """Create jobs by batches."""
        left: Iterator[dict[str, object]] = iter(jobs)
        while batch := list(islice(left, BATCH)):
            await self.post("/jobs/batch", {"jobs": batch})

    def ahead(self, number: int) -> float:
        """Return an instant (Unix time) by which so many jobs are created, and workers have come to rest."""
        return time.time() + 10 + number / SURELY_CREATED_A_SECOND

    async def until(self, instant: float) -> None:
        """Wait for an instant (Unix time), which must be to come: else what waits for it was created too late."""
        if time.time() > instant - 3:
            raise SystemExit("what was to wait for its instant was not created in time")
        await asyncio.sleep(instant - time.time())

    async def settled(self) -> None:
        """Wait until nothing is left to run."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while await self.database.fetchval("SELECT EXISTS (SELECT FROM onthedot.executions)"):
            if time.monotonic() > deadline:
                raise SystemExit("what was to run did not run in time")
            await asyncio.sleep(0.2)

    async def forget(self) -> None:
        """Begin the books anew."""
        await self.database.execute("TRUNCATE onthedot.execution_history")
        await self.database.execute("VACUUM ANALYZE onthedot.execution_history")
        await self.ready()

    async def ready(self) -> None:
        """Let PostgreSQL know what its tables are like; figures are of what ends from now on."""
        await self.database.execute("VACUUM ANALYZE onthedot.executions, onthedot.jobs")
        self.since = await self.database.fetchval("SELECT now()")

    async def quantiles(self, column: str, *shares: float, where: str = "true") -> list[float]:
        """Return quantiles of a column, or what is computed of some, of what has ended; infinite if nothing has."""
        statement = f"""SELECT percentile_disc($1::float8[]) WITHIN GROUP (ORDER BY {column})
                          FROM onthedot.execution_history WHERE completed_at >= $2 AND {where}"""  # noqa: S608 - ours
        found: list[float] | None = await self.database.fetchval(statement, list(shares), self.since)
        return found or [math.inf] * len(shares)

    async def rate(self) -> float:
        """Return how many a second have ended, from the first start to the last end."""
        statement = """SELECT count(*) / greatest(extract(epoch FROM max(completed_at) - min(started_at)), 1e-3)
                         FROM onthedot.execution_history WHERE completed_at >= $1"""
        return float(await self.database.fetchval(statement, self.since))


def client(house: House, *, connections: int) -> aiohttp.ClientSession:
    """Return a client of a house that opens up to so many connections; 0: as many as it takes."""
    return aiohttp.ClientSession(
        house.url,
        headers={"Authorization": f"Bearer {house.key}"},
        connector=aiohttp.TCPConnector(limit=connections),
        timeout=aiohttp.ClientTimeout(total=2 * PATIENCE_SECONDS),
    )
