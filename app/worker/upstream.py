"""What the steps before a step have returned, for handlers that ask for it (`ctx.upstream`)."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from app.db.stores.workflows.runs import RunStore
from app.domain.claims import Claim
from app.domain.statuses import Trigger
from app.domain.workflows.run_keys import Round, round_of
from app.worker.attempt import Attempt

KEPT = 8
"""Steps. Ten thousand instances of one know the same; what one step knows may be megabytes."""

Runnable = Callable[[Attempt], Awaitable[object]]


class Upstream:
    """Reads what has been returned before a step, once for all of its instances here."""

    def __init__(self, runs: RunStore) -> None:
        self._runs = runs
        self._kept: OrderedDict[Round, asyncio.Task[Mapping[str, Any]]] = OrderedDict()

    def before(self, run: Runnable) -> Runnable:
        """Return a handler that knows it. Nothing is added to what runs for other jobs."""

        def known_first(attempt: Attempt) -> Awaitable[object]:
            return self._tell(attempt, run) if attempt.claim.trigger == Trigger.WORKFLOW else run(attempt)

        return known_first

    async def _tell(self, attempt: Attempt, run: Runnable) -> object:
        attempt.context.upstream = await self._of(attempt.claim)
        return await run(attempt)

    async def _of(self, claim: Claim) -> Mapping[str, Any]:
        step = round_of(claim.run_key)
        reading = self._kept.get(step)
        if reading is None or (reading.done() and (reading.cancelled() or reading.exception())):
            reading = self._kept[step] = asyncio.create_task(self._runs.upstream(step))
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return await asyncio.shield(reading)
