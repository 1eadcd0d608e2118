"""Oban for Python: two hundred jobs at once in a process, staged every 100 ms."""

import asyncio
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import job
import orjson
from oban import Oban, worker
from oban.job import Job
from oban.schema import install
from psycopg.types.json import set_json_dumps, set_json_loads
from psycopg_pool import AsyncConnectionPool

CONCURRENCY, CONNECTIONS, STAGE_SECONDS = 200, 10, 0.1

set_json_dumps(orjson.dumps)  # as its own command line does
set_json_loads(orjson.loads)


@worker(queue="default")
class Noop:
    """The job."""

    async def process(self, given: Job) -> None:
        """Run it."""
        job.ran(given.args["n"])


class Peer:
    """See `job.Peer`."""

    def __init__(self, pool: AsyncConnectionPool) -> None:
        self._pool = pool
        self._oban = Oban(pool=pool)

    async def setup(self) -> None:
        await install(self._pool)

    async def work(self) -> None:
        stopped = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
        queues = {"default": {"limit": CONCURRENCY}}
        async with Oban(name="worker", pool=self._pool, queues=queues, stager={"interval": STAGE_SECONDS}):
            await stopped.wait()

    async def enqueue(self, number: int) -> None:
        await self._oban.enqueue(Noop.new({"n": number}))

    async def fill(self, numbers: Sequence[int]) -> None:
        for chunk in job.chunks(numbers):
            await self._oban.enqueue_many([Noop.new({"n": number}) for number in chunk])

    async def schedule(self, jobs: Sequence[tuple[int, float]]) -> None:
        await self._oban.enqueue_many(
            [Noop.new({"n": number}, scheduled_at=datetime.fromtimestamp(at, UTC)) for number, at in jobs]
        )


@asynccontextmanager
async def opened() -> AsyncIterator[Peer]:
    """Give it, with connections."""
    async with AsyncConnectionPool(job.DSN, min_size=1, max_size=CONNECTIONS, open=False) as pool:
        yield Peer(pool)


if __name__ == "__main__":
    job.main(opened)
