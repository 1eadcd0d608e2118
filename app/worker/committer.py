"""Commits the transactions of handlers, each together with the completion of its execution."""

import asyncio
import logging
from collections.abc import Callable

from app.db.stores.effects import EffectStore, HandlerTransaction
from app.db.stores.executions import Settlement
from app.worker.attempt import Attempt

log = logging.getLogger(__name__)


class Completion:
    """A completion that is to be committed with its handler's transaction."""

    def __init__(self, attempt: Attempt, transaction: HandlerTransaction, row: Settlement) -> None:
        self.attempt = attempt
        self.transaction: HandlerTransaction | None = transaction
        self.row = row
        self.error: Exception | None = None
        """Why its commit was not confirmed."""


class Committer:
    """One `tick` commits what waits. A commit that was not confirmed may have happened all the same: the database is
    asked, for as long as it takes, and only what it says counts.

    `done` is told of each completion, True: it counts, False: the lease was lost; `failed` of each that was rolled
    back, and why.
    """

    def __init__(
        self,
        effects: EffectStore,
        *,
        done: Callable[[Attempt, bool], None],
        failed: Callable[[Attempt, Exception], None],
    ) -> None:
        self._effects = effects
        self._done = done
        self._failed = failed
        self._waiting: list[Completion] = []
        self._discarding: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """Return how many completions wait to be committed or confirmed."""
        return len(self._waiting)

    def add(self, attempt: Attempt, transaction: HandlerTransaction, row: Settlement) -> None:
        """Take the completion of an attempt that has a transaction."""
        self._waiting.append(Completion(attempt, transaction, row))

    def discard(self, transaction: HandlerTransaction) -> None:
        """Undo the transaction of an attempt that did not complete."""
        task = asyncio.get_running_loop().create_task(transaction.discard())
        self._discarding.add(task)
        task.add_done_callback(self._discarding.discard)

    def forget(self) -> None:
        """Confirm nothing of what waits."""
        self._waiting.clear()

    async def tick(self) -> bool:
        """Commit what waits, side by side; return whether anything was committed."""
        batch, self._waiting = self._waiting, []
        for completion, error in zip(batch, await self._finish_all(batch), strict=True):
            if error is not None:  # not known yet: asked again in the next turn
                self._waiting.append(completion)
        if self._waiting:
            raise self._waiting[0].error or RuntimeError("a completion could not be confirmed")
        return bool(batch)

    async def _finish_all(self, batch: list[Completion]) -> list[BaseException | None]:
        return await asyncio.gather(*map(self._finish, batch), return_exceptions=True)

    async def _finish(self, completion: Completion) -> None:
        attempt, transaction = completion.attempt, completion.transaction
        if transaction is not None:
            completion.transaction = None
            try:
                self._done(attempt, await transaction.commit_with(completion.row))
            except Exception as error:  # noqa: BLE001 - whatever it is, what came of it is asked below
                completion.error = error
                await transaction.discard()
            else:
                return
        await self._resolve(completion)

    async def _resolve(self, completion: Completion) -> None:
        attempt, error = completion.attempt, completion.error
        committed = await self._effects.is_committed(attempt.claim)
        if committed is False and error is not None:
            self._failed(attempt, error)
        else:
            self._done(attempt, bool(committed))
