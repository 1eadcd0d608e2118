"""Keeping jobs from being created for a moment, to delete what none of them may refer to."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.actors import name_actor
from app.db.errors import is_lock_timeout
from app.db.open_transactions import OpenTransaction
from app.domain.access import Principal
from app.domain.errors import Conflict

TRIES = 5
WAIT_MS = 200
"""A lock that waits lets nobody pass who comes later: for so long job creation stands still, once a try."""
PAUSE_SECONDS = (0.1, 0.5)
"""Between tries creation goes on. By chance, so that two who try do not keep meeting."""

# ONLY: who creates a job locks the table's root as well as a partition. The partitions may be under vacuum for long,
# which gives way to a waiting lock after a second, and not to one that waits shorter.
_LOCK = text("LOCK TABLE ONLY onthedot.jobs IN SHARE ROW EXCLUSIVE MODE")
_IN_THE_WAY = text("""
    SELECT l.virtualtransaction, l.pid, a.application_name, a.usename, a.datname,
           extract(epoch FROM clock_timestamp() - a.xact_start)::float8, ARRAY['jobs']
      FROM pg_locks AS l LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
     WHERE l.locktype = 'relation' AND l.relation = 'onthedot.jobs'::regclass AND l.granted
       AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
       AND l.mode NOT IN ('AccessShareLock', 'RowShareLock')
     ORDER BY a.xact_start LIMIT 3""")


@asynccontextmanager
async def without_new_jobs(engine: AsyncEngine, by: Principal) -> AsyncIterator[AsyncConnection]:
    """Open a transaction in this user's name while which nobody else creates or changes a job.

    Transactions that have created one by `onthedot.enqueue` and go on are waited for, but never for long at a time.
    Raises `Conflict` where they do not end; it says who they are.
    """
    async with engine.connect() as connection:
        for left in reversed(range(TRIES)):
            await name_actor(connection, by.actor)
            if await _lock(connection):
                break
            if not left:
                raise await _conflict(connection)
            await asyncio.sleep(random.uniform(*PAUSE_SECONDS))  # noqa: S311 - jitter, not a secret
        yield connection
        await connection.commit()


async def _lock(connection: AsyncConnection) -> bool:
    """Lock the table against new jobs, or roll back where that takes long; tell which."""
    try:
        await connection.execute(text(f"SET LOCAL lock_timeout = {WAIT_MS}"))
        await connection.execute(_LOCK)
    except DBAPIError as error:
        if not is_lock_timeout(error):
            raise
        await connection.rollback()
        return False
    return True


async def _conflict(connection: AsyncConnection) -> Conflict:
    """Return the error that names whoever is in the way, and what to do about it."""
    sessions = [str(OpenTransaction(*row)) for row in await connection.execute(_IN_THE_WAY)]
    return Conflict(
        "transactions that create or change jobs do not end, and what they refer to must not be deleted meanwhile: "
        f"{'; '.join(sessions) or 'many short ones'}. Commit them or roll them back, or end a session by "
        "SELECT pg_terminate_backend(PID); then try again"
    )
