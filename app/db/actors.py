"""Who is behind a change: named for the audit triggers to read, or written down where there are no triggers."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.pools import Connection
from app.db.queries import load

BOOTSTRAP = "system:bootstrap"
RESUMER = "system:resumer"
RETENTION = "system:retention"
"""Parts of onthedot that change what people have defined. Deletes by retention are not audited one by one."""


async def act_as(connection: Connection, actor: str) -> None:
    """Name the actor of this transaction, such as `user:ada`. Without it a change counts as the SQL session's."""
    await connection.execute("SELECT set_config('onthedot.actor', $1, true)", actor)


@asynccontextmanager
async def acting_as(engine: AsyncEngine, actor: str) -> AsyncIterator[AsyncConnection]:
    """Open a transaction whose changes count as this actor's."""
    async with engine.begin() as connection:
        await connection.execute(text("SELECT set_config('onthedot.actor', :actor, true)"), {"actor": actor})
        yield connection


async def note_action(
    connection: Connection,
    action: str,
    target_id: object,
    *,
    actor: str,
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object],
    reason: str | None = None,
) -> None:
    """Write the audit row of something done by hand, in its transaction. `action` is such as `execution.cancel`."""
    target_type = action.partition(".")[0]
    taken = None if before is None else _json(before)
    values = (actor, action, target_type, str(target_id), taken, _json(after), reason)
    await connection.execute(load("note_action"), *values)


def _json(columns: Mapping[str, object]) -> str:
    return msgspec.json.encode(columns).decode()
