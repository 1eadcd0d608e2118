"""Tells the runs of workflows that steps of theirs have ended, so that what follows begins."""

from collections.abc import Callable

from app.db.notifier import HintSender
from app.db.stores.workflows.runs import RunStore
from app.domain.claims import Claim
from app.domain.hints import Ready
from app.domain.statuses import Trigger
from app.domain.workflows.run_keys import Round, round_of

BATCH = 500
"""Rounds looked at in one turn."""


class StepKeeper:
    """One `tick`: of the steps that executions here have ended of, carry on the runs of those that are over.

    It comes after the end is durable: a crash in between loses nothing, maintenance finds what has ended untold.
    """

    name = "steps"

    def __init__(self, runs: RunStore, hints: HintSender, *, take: Callable[[list[Ready]], bool]) -> None:
        self._runs = runs
        self._hints = hints
        self._take = take
        """Looks at once, here; says whether there is room for all of it: then nobody else need hear of it."""
        self._ended: dict[Round, int] = {}
        """Rounds of steps of which something has ended, and their shards."""

    @property
    def waiting(self) -> int:
        """Return of how many steps an end has yet to be told."""
        return len(self._ended)

    @property
    def is_due(self) -> bool:
        """Whether there is anything to tell."""
        return bool(self._ended)

    def note(self, claim: Claim) -> None:
        """Take an execution whose end is durable."""
        if claim.trigger == Trigger.WORKFLOW:
            self._ended[round_of(claim.run_key)] = claim.shard

    def forget(self) -> None:
        """Tell nothing of what waits."""
        self._ended.clear()

    async def tick(self) -> bool:
        """Tell; return whether there was anything to tell. What fails is told again."""
        batch = dict(list(self._ended.items())[:BATCH])
        if not batch:
            return False
        for done in batch:
            del self._ended[done]
        try:
            over = await self._runs.ended(batch)
            ready = await self._runs.carry_on(over) if over else []
        except BaseException:
            self._ended = batch | self._ended
            raise
        if ready and not self._take(ready):
            self._hints.announce(ready)
        return True
