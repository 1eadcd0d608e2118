"""P: those who create and cancel jobs over the API, and write down what they asked for and what they were told."""

import random
import threading
import time
from contextlib import suppress
from typing import Any
from uuid import uuid4

import httpx
import msgspec

from tests.chaos.journals import Asked, Journal, now

GIVE_UP_SECONDS = 60.0
"""How long whoever is in doubt asks again under the same key."""
ANSWER_SECONDS = 15.0
RETRY_SECONDS = 0.3
DOUBTFUL = {408, 409, 425, 429, 500, 502, 503, 504}
"""Answers after which it may have been done or not, or may be done yet. 409: the same request is under way."""


class Mix(msgspec.Struct, frozen=True, kw_only=True):
    """What jobs are like. Shares are of 1; the rest runs at once and succeeds."""

    seconds: tuple[float, float] = (0.0, 0.02)
    ahead: float = 0.2
    """Run once, up to two seconds from now."""
    failing: float = 0.1
    """Fail once before they succeed."""
    cancelled: float = 0.05
    """Of the single ones ahead: are cancelled soon after."""
    quota: int | None = None
    """How many of them their user may have at once; who sets it says so here."""
    keys: int = 0
    """Concurrency keys that they share."""
    each: int = 1
    """How many of a key run at once."""


class Producer(threading.Thread):
    """Creates `per_second` jobs a second, `batch` together, until it is told to stop."""

    def __init__(
        self,
        url: str,
        key: str,
        journal: Journal,
        *,
        number: int,
        seed: int,
        per_second: float,
        batch: int,
        mix: Mix,
    ) -> None:
        super().__init__(name=f"producer {number}", daemon=True)
        headers = {"Authorization": f"Bearer {key}"}
        self._api = httpx.Client(base_url=f"{url}/api/v1", headers=headers, timeout=ANSWER_SECONDS)
        self._journal = journal
        self._number, self._made = number, 0
        self._random = random.Random(f"{seed} {number}")  # noqa: S311 - the same for the same seed
        self._pause, self._batch, self._mix = batch / per_second, batch, mix
        self._stop_asked, self._abandoned = threading.Event(), threading.Event()
        self.operations = 0

    def run(self) -> None:
        """Create jobs, and cancel some."""
        following = time.monotonic()
        while not self._stop_asked.is_set():
            self._create()
            following = max(following + self._pause, time.monotonic() - 1)
            self._stop_asked.wait(max(0.0, following - time.monotonic()))
        self._api.close()

    def stop(self) -> None:
        """Begin nothing more; whoever waits for an answer still gets it."""
        self._stop_asked.set()

    def create(self, parameters: dict[str, Any], *, schedule: dict[str, object]) -> None:
        """Create a job."""
        job = {"task_id": "effect", "schedule": schedule, "parameters": parameters}
        self._ask("create", "/jobs", job, keys=(str(parameters["key"]),))

    def abandon(self) -> None:
        """Stop, and ask no more either: the house is gone."""
        self._abandoned.set()
        self.stop()

    def _create(self) -> None:
        jobs = [self._job() for _ in range(self._batch)]
        keys = tuple(job["parameters"]["key"] for job in jobs)
        if self._batch == 1:
            answer = self._ask("create", "/jobs", jobs[0], keys=keys)
            if (
                answer
                and self._random.random() < self._mix.cancelled
                and "scheduled_time" in jobs[0]["schedule"]
            ):
                self._cancel(answer["execution_id"])
        else:
            self._ask("create", "/jobs/batch", {"jobs": jobs}, keys=keys)

    def _job(self) -> dict[str, Any]:
        self._made += 1
        parameters: dict[str, Any] = {"key": f"{self._number}-{self._made}"}
        parameters["seconds"] = round(self._random.uniform(*self._mix.seconds), 3)
        if self._random.random() < self._mix.failing:
            parameters["fails"] = 1
        schedule: dict[str, Any] = {"type": "IMMEDIATE"}
        if self._random.random() < self._mix.ahead:
            schedule = {"type": "ONCE", "scheduled_time": time.time() + self._random.uniform(0.2, 2.0)}
        job = {"task_id": "effect", "schedule": schedule, "parameters": parameters}
        return job if self._mix.quota is None else self._limited(job, self._mix.quota)

    def _limited(self, job: dict[str, Any], quota: int) -> dict[str, Any]:
        """Have it come under a key, and say in its parameters what limits it."""
        key, each = f"key-{self._random.randrange(self._mix.keys)}", self._mix.each
        job["parameters"]["limits"] = {"user": quota, key: each}
        return job | {"concurrency_key": key, "concurrency_limit": each}

    def _cancel(self, execution_id: str) -> None:
        self._ask("cancel", f"/executions/{execution_id}/actions/cancel", {}, execution_id=execution_id)

    def _ask(
        self,
        action: str,
        path: str,
        body: Any,
        *,
        keys: tuple[str, ...] = (),
        execution_id: str | None = None,
    ) -> dict[str, Any] | None:
        """Ask until the answer is no doubt, or patience is out; return the answer where it was done."""
        self.operations += 1
        operation, idempotency_key = self._number * 1_000_000 + self.operations, uuid4().hex
        give_up = time.monotonic() + GIVE_UP_SECONDS
        while True:
            note = {"operation": operation, "action": action, "keys": keys, "execution_id": execution_id}
            self._journal.append(Asked(phase="invoke", at=now(), **note))
            answer = None
            with suppress(httpx.HTTPError):
                answer = self._api.post(path, json=body, headers={"Idempotency-Key": idempotency_key})
            phase = _phase(answer)
            self._journal.append(Asked(phase=phase, at=now(), **note, **_said(answer)))
            if phase != "info" or time.monotonic() > give_up or self._abandoned.is_set():
                return answer.json() if answer is not None and phase == "ok" else None
            time.sleep(RETRY_SECONDS)


def _phase(answer: httpx.Response | None) -> str:
    if answer is None or answer.status_code in DOUBTFUL:
        return "info"
    return "ok" if answer.is_success else "fail"


def _said(answer: httpx.Response | None) -> dict[str, Any]:
    if answer is None:
        return {}
    return {"status": answer.status_code, "retry_after": "retry-after" in answer.headers}
