"""How fast and how precise the engine is on this machine, each figure beside the limit of its kind.

    make bench                             # or: python -m benchmarks.engine
    make bench ARGS="--only drain"         # some rows; ARGS="--jobs 300000 --seconds 60" for longer ones
    make bench-full                        # all of them long: an hour or more, and some 30 GB of disk

It starts onthedot with an embedded PostgreSQL of its own (fsync on, two worker processes), lets everything run on one
machine, and prints a JSON line a figure and a table. What is counted is read from the books, not from what a client
believes. Machines that do other work at the same time measure that: compare ratios, and repeat.
"""

import argparse
import asyncio
import os
import platform
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from app.db.pools import connect
from benchmarks.bench import FULL, SHORT, Bench, Figure, Size, client
from benchmarks.house import House, fsync_ms, house, say
from benchmarks.rows.calm import idle, quiet
from benchmarks.rows.drains import WORKERS, drains, history
from benchmarks.rows.instants import burst, spread
from benchmarks.rows.recurring import recurring
from benchmarks.rows.spikes import flood, spike
from benchmarks.rows.throughput import knee, singles, soak, sustained
from benchmarks.rows.waiting import explain
from benchmarks.rows.workflows import chain, diamonds, fan

TASKS = (
    {"task_id": "noop", "execution_handler": "builtin:noop"},
    {"task_id": "keyed", "execution_handler": "builtin:noop", "concurrency_key": "tenant:{{parameters.t}}"},
)
SERVED = "critical,transactional,general,bulk,maintenance"
"""And not `bare`, which is for bare statements."""

Row = Callable[[Bench, Size], Awaitable[list[Figure]]]

ROWS: dict[str, Row] = {
    "idle": idle,
    "quiet": quiet,
    "spread": spread,
    "burst": burst,
    "singles": singles,
    "chain": chain,
    "fan": fan,
    "diamonds": diamonds,
    "sustained": sustained,
    "knee": knee,
    "soak": soak,
    "drain": drains,
    "history": history,
    "explain": explain,
    "spike": spike,
    "flood": flood,
    "recurring": recurring,
}
SIZES = {
    "jobs": "to be drained",
    "seconds": "of sustained load",
    "soak_seconds": "of the soak",
    "step_seconds": "of each rate on the way to the knee",
    "history": "finished executions beside a drain",
    "spike": "jobs that come at a hundred thousand a second",
    "recurring": "jobs that recur",
}


@asynccontextmanager
async def opened(house: House) -> AsyncIterator[Bench]:
    """Give a bench with its connections, tasks and queues."""
    database = await connect(house.dsn, application_name="bench")
    async with client(house, connections=128) as session:
        bench = Bench(house, session, database)
        await bench.post("/queues", {"queue": "bare", "batch_size": 500})
        for task in TASKS:
            await bench.post("/tasks", task)
        yield bench
    await database.close()


async def measure(house: House, size: Size, *, only: list[str] | None) -> list[Figure]:
    """Measure the rows asked for, one after the other."""
    figures: list[Figure] = []
    async with opened(house) as bench:
        for name, row in ROWS.items():
            if not only or name in only:
                found = await row(bench, size)
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


def asked() -> tuple[Size, list[str] | None]:
    """Read the command line: how long and large, and which rows (None: all)."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true", help="long rows; what else is given wins")
    for name, text in SIZES.items():
        default = f"{getattr(SHORT, name):,}, or in full {getattr(FULL, name):,}"
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, help=f"{text} ({default})")
    parser.add_argument("--only", nargs="*", choices=tuple(ROWS), help="rows to measure; without it all")
    given = vars(parser.parse_args())
    sizes = {name: given[name] for name in SIZES if given[name] is not None}
    return msgspec.structs.replace(FULL if given["full"] else SHORT, **sizes), given["only"]


def main() -> None:
    """Measure what was asked for."""
    size, only = asked()
    with tempfile.TemporaryDirectory(prefix="onthedot-bench-") as temporary:
        folder = Path(temporary) / "data"
        with house(folder, WORKER_PROCESSES=str(WORKERS), QUEUES=SERVED) as running:
            say(
                f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, "
                f"fdatasync {fsync_ms(folder):.2f} ms, durable"
            )
            say(table(asyncio.run(measure(running, size, only=only))))


if __name__ == "__main__":
    main()
