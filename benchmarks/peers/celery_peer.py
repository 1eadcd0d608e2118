"""Celery on Redis: two processes a worker, acknowledged late."""

import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import job
from celery import Celery

PROCESSES = 2

app = Celery("celery_peer", broker=job.DSN, backend=None)
app.conf.update(
    task_ignore_result=True,
    task_acks_late=True,
    worker_prefetch_multiplier=64,
    worker_disable_rate_limits=True,
    broker_connection_retry_on_startup=True,
)


@app.task(name="noop")
def noop(n: int) -> None:
    """Run the job."""
    job.ran(n)


class Peer:
    """See `job.Peer`."""

    async def setup(self) -> None:
        """Nothing is to be made."""

    async def work(self) -> None:
        quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "ERROR"]
        worker = [
            "-m",
            "celery",
            "-A",
            "celery_peer",
            "worker",
            "-c",
            str(PROCESSES),
            "-n",
            f"{os.getpid()}@%h",
        ]
        os.execv(sys.executable, [sys.executable, *worker, *quiet])  # noqa: S606 - our own command

    async def enqueue(self, number: int) -> None:
        noop.delay(number)

    async def fill(self, numbers: Sequence[int]) -> None:
        with app.producer_pool.acquire(block=True) as producer:  # it has no call for many at once
            for number in numbers:
                noop.apply_async((number,), producer=producer)

    async def schedule(self, jobs: Sequence[tuple[int, float]]) -> None:
        with app.producer_pool.acquire(block=True) as producer:
            for number, at in jobs:
                noop.apply_async((number,), eta=datetime.fromtimestamp(at, UTC), producer=producer)


@asynccontextmanager
async def opened() -> AsyncIterator[Peer]:
    """Give it."""
    yield Peer()


if __name__ == "__main__":
    job.main(opened)
