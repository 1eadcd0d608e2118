"""Procrastinate: thirty jobs at once in a process, and a look every 100 ms for what falls due."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import job
import procrastinate

CONCURRENCY, LOOK_SECONDS = 30, 0.1

app = procrastinate.App(
    connector=procrastinate.PsycopgConnector(conninfo=job.DSN, min_size=1, max_size=CONCURRENCY)
)


@app.task(name="noop")
async def noop(n: int) -> None:
    """Run the job."""
    job.ran(n)


class Peer:
    """See `job.Peer`."""

    async def setup(self) -> None:
        await app.schema_manager.apply_schema_async()

    async def work(self) -> None:
        await app.run_worker_async(concurrency=CONCURRENCY, fetch_job_polling_interval=LOOK_SECONDS)

    async def enqueue(self, number: int) -> None:
        await noop.defer_async(n=number)

    async def fill(self, numbers: Sequence[int]) -> None:
        for chunk in job.chunks(numbers):
            await noop.batch_defer_async(*({"n": number} for number in chunk))

    async def schedule(self, jobs: Sequence[tuple[int, float]]) -> None:
        for number, at in jobs:  # a batch has one instant for all of its jobs
            await noop.configure(schedule_at=datetime.fromtimestamp(at, UTC)).defer_async(n=number)


@asynccontextmanager
async def opened() -> AsyncIterator[Peer]:
    """Give it, with connections."""
    async with app.open_async():
        yield Peer()


if __name__ == "__main__":
    job.main(opened)
