"""PgQueuer: batches of a thousand, and a look every 100 ms for what falls due."""

import asyncio
import json
import signal
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

import asyncpg
import job
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgPoolDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

BATCH, CONNECTIONS, LOOK_SECONDS = 1000, 4, 0.1


class Peer:
    """See `job.Peer`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._driver = AsyncpgPoolDriver(pool)
        self._queries = Queries(self._driver)

    async def setup(self) -> None:
        await self._queries.install()

    async def work(self) -> None:
        worker = PgQueuer(self._driver)

        @worker.entrypoint("noop")
        async def noop(given: Job) -> None:
            job.ran(json.loads(given.payload)["n"])

        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.shutdown.set)
        await worker.run(batch_size=BATCH, dequeue_timeout=timedelta(seconds=LOOK_SECONDS))

    async def enqueue(self, number: int) -> None:
        await self._queries.enqueue("noop", _payload(number))

    async def fill(self, numbers: Sequence[int]) -> None:
        for chunk in job.chunks(numbers):
            await self._enqueue_all(chunk)

    async def schedule(self, jobs: Sequence[tuple[int, float]]) -> None:
        now = time.time()  # it takes a delay from now, not an instant
        delays = [timedelta(seconds=at - now) for _, at in jobs]
        await self._enqueue_all([number for number, _ in jobs], execute_after=delays)

    async def _enqueue_all(self, numbers: Sequence[int], **when: list[timedelta]) -> None:
        count = len(numbers)
        await self._queries.enqueue(["noop"] * count, list(map(_payload, numbers)), [0] * count, **when)


def _payload(number: int) -> bytes:
    return b'{"n": %d}' % number


@asynccontextmanager
async def opened() -> AsyncIterator[Peer]:
    """Give it, with connections."""
    async with asyncpg.create_pool(job.DSN, min_size=2, max_size=CONNECTIONS) as pool:
        yield Peer(pool)


if __name__ == "__main__":
    job.main(opened)
