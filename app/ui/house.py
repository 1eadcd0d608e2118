"""What the overview is read by: all its parts at once."""

import asyncio
from typing import Any, NamedTuple

from app.db.clock import DatabaseClock
from app.db.reads.overview import Failing, Late, OverviewReads
from app.db.reads.queues import QueueReads
from app.db.reads.rates import RateReads, Span
from app.db.reads.workers import WorkerReads
from app.ui.change_feed import ChangeFeed
from app.ui.verdict import judge

FAILING_SHOWN, LATE_SHOWN, UPCOMING_SHOWN, QUEUES_SHOWN = 8, 5, 10, 20


class Trouble(NamedTuple):
    """What is wrong now: in the bar of every page."""

    failing: Failing
    late: Late

    @property
    def failing_text(self) -> str:
        """Return how many jobs fail: `84+`; nothing where none does."""
        return f"{self.failing.total}{'+' if self.failing.more else ''}" if self.failing.total else ""


class House:
    """Reads how the house is doing; each part is bounded, and remembered for a moment."""

    def __init__(
        self,
        *,
        overview: OverviewReads,
        rates: RateReads,
        queues: QueueReads,
        workers: WorkerReads,
        clock: DatabaseClock,
        change_feed: ChangeFeed,
    ) -> None:
        self._overview = overview
        self._rates = rates
        self._queues = queues
        self._workers = workers
        self._clock = clock
        self._change_feed = change_feed

    async def trouble(self) -> Trouble:
        """Return what fails and what is late."""
        version = self._change_feed.version
        failing, late = await asyncio.gather(
            self._overview.failing(FAILING_SHOWN, version=version),
            self._overview.late(LATE_SHOWN, version=version),
        )
        return Trouble(failing, late)

    async def read(self, span: Span) -> dict[str, Any]:
        """Return the parts by the names that templates know them by."""
        (failing, late), upcoming, health, steps = await asyncio.gather(
            self.trouble(),
            self._overview.upcoming(UPCOMING_SHOWN, version=self._change_feed.version),
            self._overview.health(),
            self._overview.first_steps(),
        )
        rates, day, queues, counts = await asyncio.gather(
            self._rates.rates(span),
            self._rates.rates(Span.DAY),
            self._queues.list_page(limit=QUEUES_SHOWN, after=None),
            self._workers.count_states(),
        )
        workers = {count.state: count for count in counts}
        return {
            "span": span,
            "failing": failing,
            "late": late,
            "upcoming": upcoming,
            "health": health,
            "steps": steps,
            "rates": rates,
            "day": day,
            "queues": queues,
            "workers": workers,
            "clock_error_ms": self._clock.error_seconds * 1000,
            "verdict": judge(failing=failing, late=late, workers=workers, steps=steps),
        }
