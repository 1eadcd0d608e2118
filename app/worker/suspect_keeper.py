"""Sees to processes in each of which one execution that may end its worker runs alone."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from app.db.stores.admissions import AdmissionStore
from app.loop import Loop

log = logging.getLogger(__name__)

MOST_PROCESSES = 4
"""Of one worker. A neighbour of what has ended it may run for an hour: others must not wait for it to end."""
HURRY_SECONDS = 0.6
"""What they get after being asked again. Whoever asks this process to hurry kills it after a second."""
PAUSE_SECONDS = 10.0
"""After a process that could not be brought to work."""
UNTOLD_SECONDS = 10.0
"""So often it looks though nobody has told it of a suspect."""


class LoneProcess(Protocol):
    """A process that runs suspects one at a time, is run again when one ends it, and ends when there are none."""

    @property
    def is_ready(self) -> bool:
        """Whether it runs and looks for work."""
        ...

    @property
    def has_ended(self) -> bool:
        """Whether it is gone for good."""
        ...

    @property
    def failure(self) -> BaseException | None:
        """Why it was given up."""
        ...

    def start(self) -> None:
        """Begin."""
        ...

    def stop(self) -> None:
        """Ask it to finish what it has and end; asked again, to give it back and end."""
        ...

    def kill(self) -> None:
        """End it by force."""
        ...

    async def ended(self) -> None:
        """Return when it is gone."""
        ...


class SuspectKeeper:
    """One `tick`: where a suspect is due in these queues (none: all) and may run here, begin a process, up to
    `MOST_PROCESSES`.

    It looks when it is told to (`tell`) or has just found some, and each time while it could not hear that it is.
    `patience_seconds` is what they get to end when they are asked to.
    """

    def __init__(
        self,
        *,
        admissions: AdmissionStore,
        queues: Sequence[str],
        make_process: Callable[[], LoneProcess],
        is_draining: Callable[[], bool],
        hears: Callable[[], bool],
        poll_seconds: float,
        patience_seconds: float,
        hurry: asyncio.Event,
    ) -> None:
        self._admissions = admissions
        self._queues = queues
        self._make_process = make_process
        self._is_draining = is_draining
        self._hears = hears
        self._looked_at = 0.0
        self._patience_seconds = patience_seconds
        self._hurry = hurry
        self._asked = False
        self._processes: list[LoneProcess] = []
        self._not_before = 0.0
        self._found = False
        """The last look has."""
        self._looking = Loop("suspects", self.tick, interval_seconds=poll_seconds)

    def start(self) -> None:
        """Begin to look."""
        self._looking.start()

    def tell(self) -> None:
        """Look: something is due, here or elsewhere."""
        self._looked_at = 0.0
        self._looking.wake()

    async def tick(self) -> bool:
        """Look once. What is due may be for one that is on its way, or idle and about to look."""
        for process in [each for each in self._processes if each.has_ended]:
            self._let_go(process)
        if self._is_draining():
            self._ask_to_end()
            return False
        before, self._found = self._found, self._may_find() and self._may_begin() and await self._are_due()
        if self._found and (before or not self._processes):
            self._begin()
        return False

    async def stop(self) -> None:
        """Look no more, and end the processes; when patience is out or it is to hurry, ask again, then force them."""
        await self._looking.stop()
        self._ask_to_end()
        ending = asyncio.create_task(self._all_ended())
        hurried = asyncio.create_task(self._hurry.wait())
        await asyncio.wait(
            {ending, hurried}, timeout=self._patience_seconds, return_when=asyncio.FIRST_COMPLETED
        )
        hurried.cancel()
        if not ending.done():
            for process in self._processes:
                process.stop()
            await asyncio.wait({ending}, timeout=HURRY_SECONDS)
        if not ending.done():
            for process in self._processes:
                process.kill()
        await ending

    async def _all_ended(self) -> None:
        await asyncio.gather(*(process.ended() for process in self._processes))

    def _ask_to_end(self) -> None:
        """Ask once: asked again a process gives back what it runs."""
        if not self._asked:
            self._asked = True
            for process in self._processes:
                process.stop()

    def _may_find(self) -> bool:
        untold_seconds = time.monotonic() - self._looked_at
        return self._found or not self._hears() or untold_seconds >= UNTOLD_SECONDS

    def _may_begin(self) -> bool:
        is_room = len(self._processes) < MOST_PROCESSES and time.monotonic() >= self._not_before
        return is_room and all(process.is_ready for process in self._processes)

    async def _are_due(self) -> bool:
        self._looked_at = time.monotonic()
        return bool(await self._admissions.suspects(self._queues, limit=1))

    def _begin(self) -> None:
        log.warning(
            "executions are due that were running when workers ended: each runs alone in a process now",
            extra={"event": "suspects_found"},
        )
        process = self._make_process()
        self._processes.append(process)
        process.start()

    def _let_go(self, process: LoneProcess) -> None:
        self._processes.remove(process)
        if process.failure is not None:
            log.error("%s", process.failure, extra={"event": "lone_process_failed"})
            self._not_before = time.monotonic() + PAUSE_SECONDS
