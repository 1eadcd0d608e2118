"""How fast and how precise the engine is on this machine, each figure beside the limit of its kind.

    make bench                      # or: python -m benchmarks.engine
    make bench ARGS="--only drain"  # some rows; ARGS="--jobs 300000 --seconds 60" for longer ones

It starts onthedot with an embedded PostgreSQL of its own (fsync on, two worker processes), lets everything run on one
machine, and prints a JSON line a figure and a table. What is counted is read from the books, not from what a client
believes. Machines that do other work at the same time measure that: compare ratios, and repeat.
"""

import argparse
import asyncio
import json
import os
import platform
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec

from app.db.pools import Connection, connect
from benchmarks import raw
from benchmarks.house import House, fsync_ms, house, say

BATCH = 10_000
KEYS = 10_000
WORKERS = 2
PATIENCE_SECONDS = 300.0
TASKS = (
    {"task_id": "noop", "execution_handler": "builtin:noop"},
    {"task_id": "keyed", "execution_handler": "builtin:noop", "concurrency_key": "tenant:{{parameters.t}}"},
)


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
        for start in range(0, number, BATCH):
            jobs = [
                {"task_id": task_id, "schedule": wanted, "parameters": {"t": i % KEYS}, "queue": queue}
                for i in range(start, min(start + BATCH, number))
            ]
            await self.post("/jobs/batch", {"jobs": jobs})

    async def settled(self) -> None:
        """Wait until nothing is left to run."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while await self.database.fetchval("SELECT EXISTS (SELECT FROM onthedot.executions)"):
            if time.monotonic() > deadline:
                raise SystemExit("what was to run did not run in time")
            await asyncio.sleep(0.2)

    async def forget(self) -> None:
        """Begin the books anew, and let PostgreSQL know what its tables are like."""
        await self.database.execute("DELETE FROM onthedot.execution_history")
        await self.database.execute(
            "VACUUM ANALYZE onthedot.executions, onthedot.execution_history, onthedot.jobs"
        )

    async def quantiles(self, column: str, *shares: float) -> list[float]:
        """Return quantiles of a column of what has ended."""
        statement = f"""SELECT percentile_disc($1::float8[]) WITHIN GROUP (ORDER BY {column})
                          FROM onthedot.execution_history"""  # noqa: S608 - our own column
        found: list[float] = await self.database.fetchval(statement, list(shares))
        return found

    async def rate(self) -> float:
        """Return how many a second have ended, from the first start to the last end."""
        statement = """SELECT count(*) / greatest(extract(epoch FROM max(completed_at) - min(started_at)), 1e-3)
                         FROM onthedot.execution_history"""
        return float(await self.database.fetchval(statement))


Row = Callable[[Bench, argparse.Namespace], Awaitable[list[Figure]]]


async def drains(bench: Bench, given: argparse.Namespace) -> list[Figure]:
    """What waits is drained: by bare statements, by two workers, and by two workers beside ten thousand keys."""
    bare = await _bare(bench, given.jobs)
    plain, spent = await _drain(bench, "noop", given.jobs)
    keyed, keyed_spent = await _drain(bench, "keyed", given.jobs)
    return [
        Figure("drain", "bare statements, two processes", bare, "/s"),
        Figure("drain", "two workers", plain, "/s", "≥ 38,000"),
        Figure("drain", "of the bare statements", plain / bare, "of it", "≥ 0.58"),
        Figure("drain", "processor time of workers", spent[0], "µs/job", "≤ 16"),
        Figure("drain", "processor time of PostgreSQL", spent[1], "µs/job"),
        Figure("keyed", "each with one of 10,000 keys", keyed, "/s", "≥ 20,000"),
        Figure("keyed", "of the drain without keys", keyed / plain, "of it", "≥ 0.5"),
        Figure("keyed", "processor time of workers", keyed_spent[0], "µs/job"),
        Figure("keyed", "processor time of PostgreSQL", keyed_spent[1], "µs/job"),
    ]


async def _bare(bench: Bench, number: int) -> float:
    await bench.forget()
    await bench.enqueue("noop", number, queue="bare")
    await bench.forget()
    began = time.perf_counter()
    await asyncio.to_thread(raw.drain, bench.house.dsn, "bare", processes=WORKERS)
    took = time.perf_counter() - began
    statement = "SELECT extract(epoch FROM max(started_at) - min(started_at)) FROM onthedot.execution_history"
    return number / min(took, float(await bench.database.fetchval(statement)))


async def _drain(bench: Bench, task_id: str, number: int) -> tuple[float, tuple[float, float]]:
    await bench.post("/queues/general/actions/pause", {})
    await bench.enqueue(task_id, number)
    await bench.forget()
    before = bench.house.spent()
    await bench.post("/queues/general/actions/resume", {})
    await bench.settled()
    spent = bench.house.spent().since(before)
    per_job = (1e6 * spent.workers / number, 1e6 * spent.database / number)
    return await bench.rate(), per_job


async def sustained(bench: Bench, given: argparse.Namespace) -> list[Figure]:
    """Ten thousand jobs a second come in by requests of a hundred, for some seconds."""
    await bench.forget()
    body = json.dumps({"jobs": [{"task_id": "noop", "schedule": {"type": "IMMEDIATE"}}] * 100}).encode()
    headers, refused = {"Content-Type": "application/json"}, 0

    async def send() -> None:
        nonlocal refused
        async with bench.session.post("/api/v1/jobs/batch", data=body, headers=headers) as answer:
            refused += answer.status != 201

    loop, began = asyncio.get_running_loop(), time.perf_counter()
    sending = []
    for number in range(100 * given.seconds):
        await asyncio.sleep(max(0.0, began + number / 100 - time.perf_counter()))
        sending.append(loop.create_task(send()))
    await asyncio.gather(*sending)
    took = time.perf_counter() - began
    await bench.settled()
    p50, p99, most = await bench.quantiles("lateness_ms", 0.5, 0.99, 1.0)
    offered = len(sending) * 100 / took
    return [
        Figure("sustained", f"batches of 100 for {given.seconds} s", offered, "/s", "≥ 10,000"),
        Figure("sustained", "requests refused", refused, "", "0"),
        Figure("sustained", "p50 late", p50, "ms"),
        Figure("sustained", "p99 late", p99, "ms", "≤ 250"),
        Figure("sustained", "most late", most, "ms", "≤ 2,000"),
    ]


async def singles(bench: Bench, given: argparse.Namespace) -> list[Figure]:
    """Single POSTs over 128 connections."""
    await bench.forget()
    body, headers = (
        b'{"task_id": "noop", "schedule": {"type": "IMMEDIATE"}}',
        {"Content-Type": "application/json"},
    )
    took: list[float] = []
    until = time.perf_counter() + given.seconds / 2

    async def client() -> None:
        while (began := time.perf_counter()) < until:
            async with bench.session.post("/api/v1/jobs", data=body, headers=headers) as answer:
                await answer.read()
                if answer.status != 201:
                    raise SystemExit(f"a POST was answered {answer.status}")
            took.append(1000 * (time.perf_counter() - began))

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(128)))
    rate = len(took) / (time.perf_counter() - began)
    await bench.settled()
    took.sort()
    return [
        Figure("single POSTs", "128 connections", rate, "/s", "≥ 5,000"),
        Figure("single POSTs", "p50", took[len(took) // 2], "ms"),
        Figure("single POSTs", "p99", took[int(len(took) * 0.99)], "ms", "≤ 60"),
    ]


async def quiet(bench: Bench, given: argparse.Namespace) -> list[Figure]:
    """One POST each 20 ms while nothing else happens: from the request to the start of the handler."""
    await bench.forget()
    sent: dict[str, float] = {}
    for _ in range(50 * given.seconds // 2):
        began = time.time()
        answer = await bench.post("/jobs", {"task_id": "noop", "schedule": {"type": "IMMEDIATE"}})
        sent[str(answer["execution_id"])] = began
        await asyncio.sleep(max(0.0, began + 0.02 - time.time()))
    await bench.settled()
    rows = await bench.database.fetch(
        "SELECT execution_id::text, extract(epoch FROM started_at)::float8 FROM onthedot.execution_history"
    )
    waits = sorted(1000 * (started - sent[execution]) for execution, started in rows)
    return [
        Figure("one POST each 20 ms", "p50 from request to start", waits[len(waits) // 2], "ms", "≤ 4"),
        Figure(
            "one POST each 20 ms", "p99 from request to start", waits[int(len(waits) * 0.99)], "ms", "≤ 10"
        ),
    ]


async def spread(bench: Bench, _given: argparse.Namespace) -> list[Figure]:
    """A thousand jobs over 20 seconds, each on its own instant, beside bare timers of an event loop."""
    await bench.forget()
    first = time.time() + 4
    jobs = [
        {"task_id": "noop", "schedule": {"type": "ONCE", "scheduled_time": first + 0.02 * i}}
        for i in range(1000)
    ]
    await bench.post("/jobs/batch", {"jobs": jobs})
    await asyncio.sleep(max(0.0, first - time.time()))
    bare = await _bare_timers(1000, over_seconds=20.0)
    await bench.settled()
    p50, p99, most = await bench.quantiles("lateness_ms", 0.5, 0.99, 1.0)
    early = await bench.database.fetchval(
        "SELECT count(*) FROM onthedot.execution_history WHERE started_at < due_at"
    )
    return [
        Figure("1,000 over 20 s", "p50 late", p50, "ms", "≤ 1"),
        Figure("1,000 over 20 s", "p99 late", p99, "ms", f"≤ {bare + 1:.1f}"),
        Figure("1,000 over 20 s", "most late", most, "ms"),
        Figure("1,000 over 20 s", "p99 late of bare timers", bare, "ms"),
        Figure("1,000 over 20 s", "early", early, "", "0"),
    ]


async def _bare_timers(number: int, *, over_seconds: float) -> float:
    loop, late = asyncio.get_running_loop(), []
    begins = loop.time() + 0.05
    for i in range(number):
        due = begins + over_seconds * i / number
        loop.call_at(due, lambda due=due: late.append(1000 * (loop.time() - due)))
    await asyncio.sleep(over_seconds + 0.2)
    return sorted(late)[int(number * 0.99)]


async def burst(bench: Bench, _given: argparse.Namespace) -> list[Figure]:
    """Twenty thousand jobs are due at one instant."""
    await bench.forget()
    await bench.enqueue("noop", 20_000, type="ONCE", scheduled_time=time.time() + 10)
    await asyncio.sleep(10)
    await bench.settled()
    p50, most = await bench.quantiles("lateness_ms", 0.5, 1.0)
    return [
        Figure("20,000 at one instant", "p50 late", p50, "ms"),
        Figure("20,000 at one instant", "all started", most / 1000, "s", "≤ 1"),
    ]


async def idle(bench: Bench, given: argparse.Namespace) -> list[Figure]:
    """Nothing happens."""
    await asyncio.sleep(5)
    before, began = bench.house.spent(), time.perf_counter()
    await asyncio.sleep(given.seconds)
    share = bench.house.spent().since(before).whole / (time.perf_counter() - began)
    return [
        Figure("idle", "of a core", 100 * share, "%", "≤ 1"),
        Figure("idle", "memory (PSS, no shared buffers)", bench.house.memory_mb(), "MiB", "≤ 400"),
    ]


ROWS: dict[str, Row] = {
    "idle": idle,
    "quiet": quiet,
    "spread": spread,
    "burst": burst,
    "singles": singles,
    "sustained": sustained,
    "drain": drains,
}


@asynccontextmanager
async def opened(house: House) -> AsyncIterator[Bench]:
    """Give a bench with its connections, tasks and queues."""
    database = await connect(house.dsn, application_name="bench")
    headers = {"Authorization": f"Bearer {house.key}"}
    connector = aiohttp.TCPConnector(limit=128)
    async with aiohttp.ClientSession(house.url, headers=headers, connector=connector) as session:
        bench = Bench(house, session, database)
        await bench.post("/queues", {"queue": "bare", "batch_size": 500})
        for task in TASKS:
            await bench.post("/tasks", task)
        yield bench
    await database.close()


async def measure(house: House, given: argparse.Namespace) -> list[Figure]:
    """Measure the rows asked for, one after the other."""
    figures: list[Figure] = []
    async with opened(house) as bench:
        for name, row in ROWS.items():
            if not given.only or name in given.only:
                found = await row(bench, given)
                for figure in found:
                    say(msgspec.json.encode(figure).decode())
                figures += found
    return figures


def table(figures: list[Figure]) -> str:
    """Return figures as a table for docs/performance.md."""
    lines = ["| what | | measured | bar |", "|---|---|---|---|"]
    for figure in figures:
        digits = 0 if figure.value >= 100 else 2
        value = f"{figure.value:,.{digits}f} {figure.unit}".strip()
        lines.append(f"| {figure.row} | {figure.what} | {value} | {figure.bar} |")
    return "\n".join(lines)


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=100_000, help="to be drained")
    parser.add_argument("--seconds", type=int, default=20, help="of sustained load")
    parser.add_argument("--only", nargs="*", choices=tuple(ROWS), help="rows to measure; without it all")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="onthedot-bench-") as temporary:
        folder = Path(temporary) / "data"
        served = "critical,transactional,general,bulk,maintenance"  # and not `bare`
        with house(folder, WORKER_PROCESSES=str(WORKERS), QUEUES=served) as running:
            say(
                f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, "
                f"fdatasync {fsync_ms(folder):.2f} ms, durable"
            )
            say(table(asyncio.run(measure(running, given))))


if __name__ == "__main__":
    main()
