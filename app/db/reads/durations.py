"""How long a job usually runs."""

import time
from collections.abc import Collection, Mapping
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.queries import load
from app.domain.ids import shard_of

MEASURED_RUNS = 30
FEWEST_RUNS = 5
KEPT_SECONDS = 60.0
MOST_KEPT = 20_000


class DurationReads:
    """Reads what 95 of 100 runs of a job stay below. Each answer is kept for a while: it changes slowly."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._known: dict[UUID, tuple[float, float | None]] = {}

    async def usual_seconds(self, job_ids: Collection[UUID]) -> Mapping[UUID, float]:
        """Return it for those of these jobs that have run often enough."""
        now = time.monotonic()
        asked = set(job_ids)
        fresh = {one: kept[1] for one in asked if (kept := self._known.get(one)) and kept[0] > now}
        unknown = asked - fresh.keys()
        if unknown:
            found = await self._read(list(unknown))
            if len(self._known) + len(unknown) > MOST_KEPT:
                self._known.clear()
            self._known |= {one: (now + KEPT_SECONDS, found.get(one)) for one in unknown}
            fresh |= {one: found.get(one) for one in unknown}
        return {one: usual for one, usual in fresh.items() if usual is not None}

    async def _read(self, job_ids: list[UUID]) -> Mapping[UUID, float]:
        parameters = ([shard_of(one) for one in job_ids], job_ids, MEASURED_RUNS, FEWEST_RUNS)
        async with self._engine.connect() as connection:
            rows = await connection.exec_driver_sql(load("usual_durations"), parameters)
            return {row.job_id: row.seconds for row in rows}
