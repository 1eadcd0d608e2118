"""Carries on runs of workflows whose steps have ended without anybody having told them."""

import logging

from app.db.notifier import HintSender
from app.db.stores.workflows.runs import FIRST, RunStore

log = logging.getLogger(__name__)

BATCH = 2000
"""Running steps looked at in one turn; the next one goes on from there."""
RUNS_AT_ONCE = 100
"""Runs carried on in one transaction."""


class WorkflowKeeper:
    """One `tick`: heal what a crash has left between the end of a step and its run; end what is past its deadline.

    Workers tell runs at once. What nobody tells of ends here: steps that were cancelled, expired or reaped.
    """

    def __init__(self, runs: RunStore, *, hints: HintSender) -> None:
        self._runs = runs
        self._hints = hints
        self._after = FIRST

    async def tick(self) -> bool:
        """Look; return whether there are more running steps than were looked at."""
        if not await self._runs.exist():
            self._after = FIRST
            return False
        moved = await self._runs.look(limit=RUNS_AT_ONCE)
        moved.announce(self._hints)
        stalled = await self._runs.stalled(self._after, limit=BATCH)
        for start in range(0, len(stalled.steps), RUNS_AT_ONCE):
            self._hints.announce(await self._runs.carry_on(stalled.steps[start : start + RUNS_AT_ONCE]))
        self._after = stalled.upto or FIRST
        return stalled.upto is not None
