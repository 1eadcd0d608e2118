"""Committing what comes in at the same time together: one flush of the log serves hundreds of requests."""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol
from uuid import UUID

from app.db.errors import is_unavailable
from app.db.stores.answers import patiently
from app.db.stores.jobs import Stored, Submission
from app.db.stores.unique_keys import key_of
from app.domain.errors import RequestUnderway, Unavailable
from app.domain.jobs import NewJob

log = logging.getLogger(__name__)

MAX_SUBMISSIONS = 500
MAX_BYTES = 2 * 1024 * 1024
MAX_WAITING = 20_000
"""More jobs than this, of requests that wait, will not be stored in time: further ones are better told so at once."""
COMMITTERS = 2
"""One commit is flushed while the next one is filled."""
RESOLVE_TRIES = 5
RESOLVE_PAUSE_SECONDS = 0.2


class _Waiting(NamedTuple):
    submission: Submission
    size: int
    done: "asyncio.Future[Stored]"

    @property
    def keys(self) -> set[bytes]:
        """Return the hashes of its Idempotency-Key and of its jobs' unique keys."""
        request = self.submission.request
        unique = {key for job in self.submission.jobs if (key := key_of(job))}
        return unique | {request.key_hash} if request else unique


class Store(Protocol):
    """What stores submissions in one transaction."""

    async def create(self, submissions: Sequence[Submission]) -> Stored: ...
    async def known(self, jobs: Sequence[NewJob]) -> set[UUID]: ...


class GroupCommit:
    """Stores submissions, those that wait at the same time in one transaction.

    On an idle server a submission is committed at once; while commits are under way others gather. One that
    fails takes nobody with it: its group is replayed one by one.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: deque[_Waiting] = deque()
        self._jobs_waiting = 0
        self._committers: set[asyncio.Task[None]] = set()

    async def submit(self, submission: Submission) -> Stored:
        """Return when the submission is durable, or a repeat. Raises what storing it raises, and `Unavailable`."""
        if self._jobs_waiting >= MAX_WAITING:
            raise Unavailable("more requests are waiting than can be served in time; try again in a moment")
        size = sum(len(job.parameters) + 500 for job in submission.jobs)
        waiting = _Waiting(submission, size, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._jobs_waiting += len(submission.jobs)
        if len(self._committers) < COMMITTERS:
            committer = asyncio.get_running_loop().create_task(self._commit_all())
            self._committers.add(committer)
            committer.add_done_callback(self._committers.discard)
        try:
            return await waiting.done
        except RequestUnderway:  # it waits by itself: others are committed together with whoever waits there
            return await patiently(lambda: self._store.create([submission]))

    async def _commit_all(self) -> None:
        while self._waiting:
            if group := self._take():
                await self._commit(group)

    def _take(self) -> list[_Waiting]:
        group = [self._waiting.popleft()]
        size, keys = group[0].size, group[0].keys
        while self._waiting and len(group) < MAX_SUBMISSIONS:
            following = self._waiting[0]
            if size + following.size > MAX_BYTES or not keys.isdisjoint(following.keys):
                break  # in the same transaction it would not find what is there under its key
            size += following.size
            keys |= following.keys
            group.append(self._waiting.popleft())
        self._jobs_waiting -= sum(len(one.submission.jobs) for one in group)
        return [one for one in group if not one.done.done()]

    async def _commit(self, group: list[_Waiting]) -> None:
        try:
            stored = await self._store.create([one.submission for one in group])
        except Exception as error:  # noqa: BLE001 - whatever it is, it goes to those who wait
            if is_unavailable(error):
                await self._resolve(group, error)
            elif len(group) > 1:
                for one in group:
                    await self._commit([one])
            else:
                _fail(group, error)
            return
        for one in group:
            _succeed(one, stored)

    async def _resolve(self, group: list[_Waiting], error: Exception) -> None:
        """Find out what became of a group whose commit was not confirmed: ids are ours, so they can be asked for.

        What is not there is stored again; if the first commit comes through after all, the ids collide and the
        next look finds them.
        """
        log.warning(
            "the outcome of a commit is unknown", extra={"event": "commit_unknown", "reason": repr(error)}
        )
        for _ in range(RESOLVE_TRIES):
            await asyncio.sleep(RESOLVE_PAUSE_SECONDS)
            group = [one for one in group if not one.done.done()]
            if not group:
                return  # they were told already that nobody knows
            with suppress(Exception):
                known = await self._store.known([job for one in group for job in one.submission.jobs])
                missing = [one for one in group if not all(j.job_id in known for j in one.submission.jobs)]
                for one in group:
                    if one not in missing:
                        _succeed(one, Stored({job.job_id: None for job in one.submission.jobs}, set()))
                if missing:
                    stored = await self._store.create([one.submission for one in missing])
                    for one in missing:
                        _succeed(one, stored)
                return
        _fail(group, Unavailable("the database cannot be reached; whether this was stored is not known"))


def _succeed(one: _Waiting, stored: Stored) -> None:
    if not one.done.done():
        one.done.set_result(stored)


def _fail(group: list[_Waiting], error: Exception) -> None:
    for one in group:
        if not one.done.done():
            one.done.set_exception(error)
