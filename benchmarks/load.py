"""Load over REST in an open loop: requests go out at their instants, whatever becomes of those before them."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable

import aiohttp
import msgspec

from app.db.pools import Connection
from benchmarks.bench import Figure

POLITELY = "503 with Retry-After"
_COMPLETED = """
SELECT (SELECT count(DISTINCT job_id) FROM onthedot.execution_history
         WHERE status = 'COMPLETED' AND batch_id = ANY ($1::uuid[]))
     + (SELECT count(DISTINCT job_id) FROM onthedot.execution_history
         WHERE status = 'COMPLETED' AND job_id = ANY ($2::uuid[]))
"""
_HEADERS = {"Content-Type": "application/json"}


class _Created(msgspec.Struct):
    """What an acknowledgement says of a batch, or of a single job."""

    batch_id: str | None = None
    job_id: str | None = None
    created: int = 1


class Load:
    """Requests, and how they were answered."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self._batches: list[str] = []
        self._singles: list[str] = []
        self.acknowledged = 0
        """Jobs."""
        self.refused: Counter[str] = Counter()
        """Requests that were not granted, by how they were answered."""
        self.unanswered = 0
        """Requests that are due and have no answer yet."""
        self.slowest_seconds = 0.0

    async def offer(
        self, path: str, body: Callable[[float], bytes], *, per_second: int, seconds: float
    ) -> float:
        """Send requests at a rate for some time; return how long it took until the last was answered, in seconds.

        `body` gets the instant (Unix time) at which the request ought to be sent.
        """
        loop, began, sending = asyncio.get_running_loop(), time.time(), []
        for number in range(round(per_second * seconds)):
            instant = began + number / per_second
            await asyncio.sleep(max(0.0, instant - time.time()))
            sending.append(loop.create_task(self.send(path, body(instant))))
        await asyncio.gather(*sending)
        return time.time() - began

    async def send(self, path: str, body: bytes) -> None:
        """Send one request and note its answer."""
        began = time.perf_counter()
        self.unanswered += 1
        try:
            async with self._session.post(f"/api/v1{path}", data=body, headers=_HEADERS) as answer:
                self._note(answer, await answer.read())
        except (aiohttp.ClientError, TimeoutError) as error:
            self.refused[type(error).__name__] += 1
        self.unanswered -= 1
        self.slowest_seconds = max(self.slowest_seconds, time.perf_counter() - began)

    def _note(self, answer: aiohttp.ClientResponse, text: bytes) -> None:
        if answer.status == 201:
            created = msgspec.json.decode(text, type=_Created)
            self.acknowledged += created.created
            if created.batch_id:
                self._batches.append(created.batch_id)
            elif created.job_id:
                self._singles.append(created.job_id)
        else:
            polite = answer.status == 503 and "Retry-After" in answer.headers
            self.refused[POLITELY if polite else str(answer.status)] += 1

    def refusals(self, row: str, *, bar: str = "") -> list[Figure]:
        """Return how many requests were not granted because there are too many (bar: `bar`), and how many
        otherwise."""
        others = {how: number for how, number in self.refused.items() if how != POLITELY}
        how = ", ".join(others)
        return [
            Figure(row, f"requests answered {POLITELY}", self.refused[POLITELY], "", bar),
            Figure(row, f"requests answered otherwise {how}".strip(), sum(others.values()), "", "0"),
        ]

    async def lost(self, database: Connection) -> int:
        """Return how many acknowledged jobs have not completed by the books: by their ids, so that nothing nets."""
        return self.acknowledged - int(await database.fetchval(_COMPLETED, self._batches, self._singles))


def batch(number: int, **parameters: object) -> bytes:
    """Return a request for a batch of jobs that are due at once and do nothing."""
    job = {"task_id": "noop", "schedule": {"type": "IMMEDIATE"}, "parameters": parameters}
    return json.dumps({"jobs": [job] * number}).encode()
