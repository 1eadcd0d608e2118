"""One look for all: who has nothing to do is not to ask the database every second whether that is so."""

from collections.abc import Callable, Mapping

from app.db.stores.work_to_do import WorkToDo


class Lookout:
    """One `tick`: look what there is to do, and wake whoever does it.

    `wake` has a call for each name in `work_to_do.sql`. What it may miss, for it was looked at a moment too early, is
    there at the next look.
    """

    def __init__(self, work: WorkToDo, *, wake: Mapping[str, Callable[[], None]]) -> None:
        self._work = work
        self._wake = wake

    async def tick(self) -> bool:
        """Look once; there is never more to do at once."""
        for name in await self._work.look():
            self._wake[name]()
        return False
