"""Whatever the order in which workers, reaper and people touch one execution: it ends once, by its newest lease.

Every merge of the steps of two and of three transactions is run. What comes out must be what some order of the same
statements one after the other gives, and no promise may be broken in any. Groups in which one of the statements never
finds the row are left out: they are smaller groups in disguise.

INTERLEAVINGS=all runs all groups of three instead of a sample (some minutes, with `--timeout 0`).
"""

import asyncio
import itertools
import logging
import os
import random
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import pytest

from app.db.pools import Connection, Pool, connect, open_pool
from tests.reliability.interleave import STEPS, Session, Statement, orders, run_order
from tests.reliability.one_execution import (
    BEGINNING,
    FREEING,
    SKIPPING,
    STATES,
    TAKING_BACK,
    Bed,
    Ended,
    Subject,
    operations,
)

ALL = os.environ.get("INTERLEAVINGS") == "all"
LARGEST = 4
SAMPLE = 2
"""Groups of three for each state, unless it is all."""
log = logging.getLogger(__name__)


class Result(NamedTuple):
    """How many rows each statement got, and what is left."""

    rows: tuple[tuple[str, int], ...]
    ended: Ended

    @property
    def did(self) -> set[str]:
        """Return the statements that found the row."""
        return {name for name, rows in self.rows if rows}


@dataclass
class Tally:
    """What was run, and what went wrong in it."""

    groups: int = 0
    possible: int = 0
    impossible: int = 0
    violations: list[str] = field(default_factory=list)

    @classmethod
    def total(cls, tallies: Iterable[Self]) -> Self:
        """Return the sum."""
        total = cls()
        for each in tallies:
            total.groups += each.groups
            total.possible += each.possible
            total.impossible += each.impossible
            total.violations += each.violations
        return total


class Laboratory:
    """Runs groups of statements on one execution that is in one state."""

    def __init__(self, subject: Subject, monitor: Connection, connections: list[Connection]) -> None:
        self._bed = Bed(subject, monitor)
        self._subject = subject
        self._monitor = monitor
        self._connections = connections
        self._operations = operations(subject)
        self._serial: dict[tuple[str, ...], Result] = {}
        self.tally = Tally()

    async def prepare(self, pool: Pool, state: str) -> None:
        """Make the execution in this state."""
        await self._subject.make(pool, state)
        await self._bed.keep()

    async def run_groups(self, size: int, most: int | None) -> None:
        """Run the groups of so many statements that are worth it, up to `most` of them."""
        groups = list(itertools.combinations(self._operations, size))
        random.Random(0).shuffle(groups)  # noqa: S311 - the same at every run
        for names in groups:
            if self.tally.groups == most:
                break
            if await self.is_worth_it(names):
                await self.run(names)

    async def is_worth_it(self, names: tuple[str, ...]) -> bool:
        """Tell whether each of them finds the row in some order."""
        did: set[str] = set()
        for each in itertools.permutations(names):
            # One that begins with nothing done is a smaller group's, and ends like one that does nothing later on.
            if (await self.serial(each[:1])).did:
                did |= (await self.serial(each)).did
            if did == set(names):
                return True
        return False

    async def run(self, names: tuple[str, ...], *, unfenced: str | None = None) -> list[str]:
        """Run every order of these statements; return what went wrong."""
        statements = operations(self._subject, unfenced=unfenced) if unfenced else self._operations
        found: list[str] = []
        impossible: tuple[str, ...] = ()
        for order in orders(names):
            if impossible and order[: len(impossible)] == impossible:
                self.tally.impossible += 1
                continue
            result, impossible = await self._take(order, names, statements)
            if result is None:
                self.tally.impossible += 1
            else:
                self.tally.possible += 1
                found += [f"{order}: {what}" async for what in self._violations(result)]
        self.tally.groups += 1
        self.tally.violations += found
        return found

    async def serial(self, names: tuple[str, ...]) -> Result:
        """Return what these statements do one after the other."""
        if names not in self._serial:
            order = tuple(name for name in names for _ in range(STEPS))
            result, _ = await self._take(order, names, self._operations)
            assert result is not None
            self._serial[names] = result
        return self._serial[names]

    async def _take(
        self, order: tuple[str, ...], names: tuple[str, ...], statements: dict[str, Statement]
    ) -> tuple[Result | None, tuple[str, ...]]:
        await self._bed.reset()
        sessions = {
            name: Session(connection, statements[name])
            for name, connection in zip(names, self._connections, strict=False)
        }
        impossible = await run_order(order, sessions, self._monitor)
        if impossible is not None:
            return None, impossible
        rows = tuple(sorted((name, session.rows) for name, session in sessions.items()))
        return Result(rows, await self._bed.ended()), ()

    async def _violations(self, result: Result) -> AsyncIterator[str]:
        for promise in broken_promises(result):
            yield promise
        if not await self._is_serial(result):
            yield f"no order one after the other gives {result}"

    async def _is_serial(self, result: Result) -> bool:
        """Tell whether it could have happened one after the other; who passes over a locked row was not there."""
        got = dict(result.rows)
        absent = [name for name, rows in got.items() if not rows and name in SKIPPING]
        for size in range(len(absent) + 1):
            for gone in itertools.combinations(absent, size):
                rows = tuple(each for each in result.rows if each[0] not in gone)
                for names in itertools.permutations(sorted(got.keys() - set(gone))):
                    if names and await self.serial(names) == Result(rows, result.ended):
                        return True
        return False


def broken_promises(result: Result) -> Iterator[str]:
    """Yield what must never be, in whatever order."""
    did, (live, finished, _) = result.did, result.ended
    if (live is not None) + (finished is not None) != (0 if "drop" in did else 1):
        yield f"{live} lives and {finished} has ended"
    taken = did & TAKING_BACK - (
        {"pause"} if "replan" in did else set()
    )  # `replan` is of a job that is not paused
    if taken and did & BEGINNING and not did & FREEING:
        yield f"{taken} took back what {did & BEGINNING} began"
    for name, epoch in (("settle", 1), ("settle_newer", 3)):
        if name in did and (finished is None or finished[:2] != ("COMPLETED", epoch)):
            yield f"{name} under lease {epoch} completed {finished}"
    if {"settle", "settle_newer"} <= did:
        yield "two completions were accepted"


@asynccontextmanager
async def laboratories(dsn: str, states: Iterable[str]) -> AsyncIterator[dict[str, Laboratory]]:
    """Give a laboratory for each of these states; they do not disturb each other."""
    async with AsyncExitStack() as stack:

        async def opened(name: str) -> Connection:
            connection = await connect(dsn, application_name=name)
            stack.push_async_callback(connection.close)
            return connection

        pool = await stack.enter_async_context(await open_pool(dsn, size=1, application_name="setup"))
        made: dict[str, Laboratory] = {}
        for number, state in enumerate(states):
            sessions = [await opened(f"session {which}") for which in range(LARGEST)]
            made[state] = Laboratory(Subject.of(number), await opened("monitor"), sessions)
            await made[state].prepare(pool, state)
        yield made


async def run_everywhere(dsn: str, *, size: int, most: int | None = None) -> Tally:
    """Run groups of so many statements in all states."""
    async with laboratories(dsn, STATES) as made, asyncio.TaskGroup() as running:
        for laboratory in made.values():
            running.create_task(laboratory.run_groups(size, most))
    tally = Tally.total(laboratory.tally for laboratory in made.values())
    log.info(
        "%d groups of %d: %d orders run, %d cannot happen, %d violations",
        tally.groups, size, tally.possible, tally.impossible, len(tally.violations),
    )  # fmt: skip
    return tally


async def test_whatever_two_meet_in_whatever_order(dsn: str) -> None:
    tally = await run_everywhere(dsn, size=2)

    assert tally.possible > tally.groups > 0
    assert tally.violations == []


async def test_whatever_three_meet_in_whatever_order(dsn: str) -> None:
    tally = await run_everywhere(dsn, size=3, most=None if ALL else SAMPLE)

    assert tally.possible > tally.groups > 0
    assert tally.violations == []


UNFENCED = {
    "arm": ("leased ahead", ("arm", "release", "claim_ahead")),
    "renew": ("running, lapsed", ("renew", "reap", "claim")),
    "settle": ("running, lapsed", ("settle", "reap", "claim")),
    "retry": ("running, lapsed", ("retry", "reap", "claim")),
    "release": ("running, lapsed", ("release", "reap", "claim")),
}
"""For each statement that carries a fence, whom it meets where the fence alone keeps it from what is another's."""


@pytest.mark.parametrize("name", UNFENCED)
async def test_each_fence_is_needed(dsn: str, name: str) -> None:
    state, names = UNFENCED[name]
    async with laboratories(dsn, [state]) as made:
        fenced = await made[state].run(names)
        unfenced = await made[state].run(names, unfenced=name)

    log.info("%s without its fence: %d violations", name, len(unfenced))
    assert fenced == []
    assert unfenced != []


async def test_a_worker_that_claims_again_what_it_lost_cannot_settle_with_the_old_epoch(dsn: str) -> None:
    state, rightly = "running, lapsed", {"reap", "claim", "settle_newer"}
    async with laboratories(dsn, [state]) as made:
        for names in (
            ("reap", "claim", "settle", "settle_newer"),
            ("reap", "claim", "settle_newer", "settle"),
        ):
            assert (await made[state].serial(names)).did == rightly
