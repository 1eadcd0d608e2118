"""What limits an execution, and what counts against that."""

from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.clock import DatabaseClock
from app.db.queries import load
from app.db.reads.workers import STALE_AFTER
from app.db.stores.admissions import LIMIT_STATES
from app.domain.admission import Candidate, Host, LimitState
from app.domain.explanation import Reason
from app.domain.ids import shard_of
from app.domain.limit_reasons import Holder, LimitSituation, Place, keys_of, limit_reasons

HOLDERS = 5
"""Of each limit that are named."""
_FIELDS = len(Candidate.__struct_fields__)


async def limits_in_the_way(
    connection: AsyncConnection, execution_id: UUID, clock: DatabaseClock
) -> list[Reason]:
    """Return what limits keep a live execution waiting."""
    rows = await _rows(connection, load("explain_limits"), shard_of(execution_id), execution_id)
    if not rows:
        return []
    row = rows[0]
    candidate, queue, labels = Candidate(*row[:_FIELDS]), row[_FIELDS], row[_FIELDS + 1]
    places = await _places(connection, queue, labels)
    keys = keys_of(candidate, queue, places)
    states = await _rows(connection, LIMIT_STATES, keys)
    situation = LimitSituation(
        now=clock.now(),
        candidate=candidate,
        queue=queue,
        labels=labels,
        states={state[0]: LimitState(*state[1:]) for state in states},
        holders=await _holders(connection, keys),
        places=places,
    )
    return limit_reasons(situation)


async def _places(connection: AsyncConnection, queue: str, labels: dict[str, str]) -> list[Place]:
    required = msgspec.json.encode(labels).decode()
    rows = await _rows(connection, load("explain_hosts"), queue, required, STALE_AFTER.total_seconds())
    return [Place(Host(name, cores or 0.0, memory or 0), has) for name, cores, memory, has in rows]


async def _holders(connection: AsyncConnection, keys: list[str]) -> dict[str, list[Holder]]:
    holders: dict[str, list[Holder]] = {}
    for key, execution_id, since in await _rows(connection, load("explain_holders"), keys, HOLDERS):
        holders.setdefault(key, []).append(Holder(execution_id, since))
    return holders


async def _rows(connection: AsyncConnection, statement: str, *parameters: object) -> list[Any]:
    return list(await connection.exec_driver_sql(statement, parameters))
