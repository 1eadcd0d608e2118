"""onthedot: as it is set, given jobs over REST."""

import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import aiohttp

from app import Context, task
from benchmarks.peers import job

NOW = {"type": "IMMEDIATE"}


@task("noop")
async def noop(ctx: Context) -> None:
    """Run the job."""
    job.ran(ctx.parameters["n"])


class Peer:
    """See `job.Peer`."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def setup(self) -> None:
        await self._post("/tasks", {"task_id": "noop", "execution_handler": "python:noop"})

    async def work(self) -> None:
        os.execv(sys.executable, [sys.executable, "-m", "app", "worker"])  # noqa: S606 - our own command

    async def enqueue(self, number: int) -> None:
        await self._post("/jobs", _job(number, NOW))

    async def fill(self, numbers: Sequence[int]) -> None:
        for chunk in job.chunks(numbers):
            await self._post("/jobs/batch", {"jobs": [_job(number, NOW) for number in chunk]})

    async def schedule(self, jobs: Sequence[tuple[int, float]]) -> None:
        made = [_job(number, {"type": "ONCE", "scheduled_time": at}) for number, at in jobs]
        await self._post("/jobs/batch", {"jobs": made})

    async def _post(self, path: str, body: object) -> None:
        async with self._session.post(f"/api/v1{path}", json=body) as answer:
            if answer.status >= 400:
                raise SystemExit(f"POST {path} was answered {answer.status}: {await answer.text()}")


def _job(number: int, schedule: Mapping[str, object]) -> dict[str, object]:
    return {"task_id": "noop", "schedule": schedule, "parameters": {"n": number}}


@asynccontextmanager
async def opened() -> AsyncIterator[Peer]:
    """Give it, with connections."""
    headers = {"Authorization": f"Bearer {os.environ['PEER_KEY']}"}
    async with aiohttp.ClientSession(os.environ["PEER_URL"], headers=headers) as session:
        yield Peer(session)


if __name__ == "__main__":
    job.main(opened)
