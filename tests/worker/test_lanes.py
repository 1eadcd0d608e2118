"""In which order a backlog is claimed that comes under limits."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import pytest

from app.db.clock import DatabaseClock
from app.db.pools import Pool
from app.domain.claims import Claim
from app.domain.hints import Ready
from app.domain.ids import new_job_id, shard_of
from app.worker.lanes import LaneClaimer
from app.worker.marks import START
from tests.db.limit_bench import Bench
from tests.factories import insert, make_executions, make_task

JOB_ID = new_job_id(0)
SHARD = shard_of(JOB_ID)


class Backlog:
    """One place, and a worker that claims there."""

    def __init__(self, pool: Pool, clock: DatabaseClock) -> None:
        self.bench = Bench(pool)
        self._clock = clock
        self.told: list[UUID] = []
        self.lanes = LaneClaimer(self.bench.admissions, clock=clock, on_cancels=self.told.append)

    async def make(self, count: int, **columns: Any) -> list[UUID]:
        """Make executions that come under a key and have been due for a while."""
        made: Mapping[str, Any] = {"limited": True, "job_id": JOB_ID, "due_in_seconds": -9.0} | columns
        rows = [dict(made, run_key=f"{columns} {i}") for i in range(count)]
        return await make_executions(self.bench.pool, rows)

    async def claim(self, limit: int) -> tuple[list[Claim], bool]:
        """Claim; return what was claimed, and whether there is to be another look at once."""
        place = Ready(SHARD, "general", 2, await self._oldest(), limited=True)
        self.lanes.begin()
        found = await self.lanes.claim(place, limit=limit, lease_seconds=30, mark=START)
        return found.claims, found.again_at is not None and found.again_at <= self._clock.now()

    async def keys(self, limit: int) -> list[str]:
        """Claim; return by which keys."""
        claims, _ = await self.claim(limit)
        ids = [claim.execution_id for claim in claims]
        rows = await self.bench.pool.fetch(
            "SELECT concurrency_key FROM onthedot.executions WHERE execution_id = ANY ($1) ORDER BY due_at",
            ids,
        )
        return [row[0] for row in rows]

    async def end(self, claims: Sequence[Claim]) -> None:
        """End what was claimed."""
        await self.bench.settle(claims)

    async def _oldest(self) -> Any:
        return await self.bench.pool.fetchval("SELECT min(due_at) FROM onthedot.executions")


@pytest.fixture
async def backlog(pool: Pool, clock: DatabaseClock) -> Backlog:
    """Return a place without work; the task `report` and two users are there."""
    await make_task(pool)
    users = [{"user_id": name, "name": name, "role": "operator"} for name in ("ada", "bob")]
    await insert(pool, "users", users)
    return Backlog(pool, clock)


def _keys(count: int, first: int = 0) -> list[str]:
    return [f"k{i:03}" for i in range(first, first + count)]


async def _one_of_each(backlog: Backlog, keys: Sequence[str], **columns: Any) -> None:
    """The later a key stands in the order of lanes, the older its execution."""
    for i, key in enumerate(keys):
        await backlog.make(1, concurrency_key=key, **{"due_in_seconds": -9.0 - i / 100} | columns)


async def test_after_a_visit_to_lanes_the_oldest_of_one_user_come_first(backlog: Backlog) -> None:
    await _one_of_each(backlog, _keys(100))
    visits = [sorted(await backlog.keys(4)) for _ in range(6)]

    assert visits[:4] == [_keys(4, 28), _keys(4, 96), _keys(4, 92), _keys(4, 88)]  # 32 lanes, and then all
    assert visits[4:] == [_keys(4, 60), _keys(4, 84)]  # the next 32


async def test_where_another_user_waits_lanes_take_turns(backlog: Backlog) -> None:
    await _one_of_each(backlog, _keys(100))
    await _one_of_each(backlog, ["theirs"], user_id="bob", due_in_seconds=-1.0)
    visits = [await backlog.keys(34) for _ in range(3)]

    assert "theirs" in visits[2]
    assert sum(map(len, visits)) == 101


async def test_where_most_of_the_oldest_wait_for_a_limit_lanes_take_turns(backlog: Backlog) -> None:
    await backlog.make(50, concurrency_key="full", due_in_seconds=-99.0)
    await _one_of_each(backlog, _keys(40))
    first, second = await backlog.keys(10), await backlog.keys(10)
    rest = [await backlog.keys(10) for _ in range(4)]

    assert first == ["full", *_keys(9, 22)[::-1]]
    assert second == _keys(9, 31)[::-1]  # of the oldest none, so the lanes that are left
    assert sorted(key for keys in rest for key in keys) == _keys(22)


async def test_a_look_that_finds_nothing_is_the_last_one(backlog: Backlog) -> None:
    await backlog.make(20, concurrency_key="one")
    looks = [await backlog.claim(10) for _ in range(2)]

    assert [(len(claims), at_once) for claims, at_once in looks] == [(1, True), (0, False)]
    await backlog.end(looks[0][0])
    again, _ = await backlog.claim(10)
    assert len(again) == 1


async def test_in_whatever_order_it_comes_the_next_one_of_a_job_has_what_runs_stopped(
    backlog: Backlog,
) -> None:
    await _one_of_each(backlog, _keys(40))
    await backlog.claim(4)  # lane by lane; the oldest are to come
    overlap: Mapping[str, Any] = {"overlap": "cancel_running", "concurrency_key": None}
    await backlog.make(1, due_in_seconds=-50.0, **overlap)
    (running,), _ = await backlog.claim(1)
    await backlog.make(1, due_in_seconds=-40.0, **overlap)
    claims, _ = await backlog.claim(1)

    assert (claims, backlog.told) == ([], [running.execution_id])
