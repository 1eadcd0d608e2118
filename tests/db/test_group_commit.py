"""What waits to be stored is bounded by its jobs, however few requests they come in."""

import asyncio
from collections.abc import Sequence

import pytest

from app.db.pools import Pool
from app.db.stores.jobs import JobStore, Stored, Submission
from app.domain.access import Actor
from app.domain.errors import Unavailable
from app.intake import group_commit
from app.intake.group_commit import COMMITTERS, GroupCommit
from tests.api.conftest import add_user
from tests.factories import make_task, new_job
from tests.polling import eventually

JOBS = 10
WAITING_FOR_THE_LOCK = (
    "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'onthedot.jobs'::regclass"
)


async def test_more_jobs_than_can_be_stored_in_time_are_refused_at_once(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "MAX_WAITING", 2 * JOBS)
    await make_task(pool)
    await add_user(pool, "ada", role="operator")
    commits = GroupCommit(JobStore(pool))
    taken: list[asyncio.Task[Stored]] = []

    async def all_are_stuck() -> bool:
        return await pool.fetchval(WAITING_FOR_THE_LOCK) == len(taken)

    async with pool.acquire() as other, other.transaction():
        await other.execute("LOCK TABLE onthedot.jobs IN SHARE MODE")
        for _ in range(COMMITTERS):
            taken.append(asyncio.create_task(commits.submit(await _submission(pool))))
            await eventually(all_are_stuck)
        waiting = [asyncio.create_task(commits.submit(await _submission(pool))) for _ in range(2)]
        await asyncio.sleep(0)  # they stand in line
        with pytest.raises(Unavailable):
            await commits.submit(await _submission(pool))

    stored = await asyncio.gather(*taken, *waiting)
    assert _number(stored) == await pool.fetchval("SELECT count(*) FROM onthedot.jobs") == 4 * JOBS
    assert _number([await commits.submit(await _submission(pool))]) == JOBS, "there is room again"


def _number(stored: Sequence[Stored]) -> int:
    return len({job_id for one in stored for job_id in one.lanes})


async def _submission(pool: Pool) -> Submission:
    return Submission(jobs=[await new_job(pool) for _ in range(JOBS)], actor=Actor("user:ada"))
