"""What comes under limits and is late nevertheless."""

from typing import Any
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.queries import load
from app.db.stores.admissions import LIMIT_STATES
from app.domain.admission import Candidate, LimitState
from app.domain.lateness import late_beside_limits, limits_to_look_at

LOOKED_AT = 200
"""Of each queue and priority: what limits keep waiting may be a million."""


async def late_limited(connection: AsyncConnection) -> list[UUID]:
    """Return the executions that should have begun and that no limit keeps waiting.

    Where limits leave room for some of those that wait, only these are late.
    """
    found = await _rows(connection, load("late_limited"), LOOKED_AT)
    waiting = [(Candidate(*row[:-1]), row[-1]) for row in found]
    if not waiting:
        return []
    states = await _rows(connection, LIMIT_STATES, limits_to_look_at(waiting))
    return late_beside_limits(waiting, {state[0]: LimitState(*state[1:]) for state in states})


async def _rows(connection: AsyncConnection, statement: str, *parameters: object) -> list[Any]:
    return list(await connection.exec_driver_sql(statement, parameters))
