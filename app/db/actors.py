"""Who is behind a change: named for the audit triggers to read, and for what is written down where there are none."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec

from app.db.pools import Connection
from app.db.queries import load
from app.domain.access import Actor

if TYPE_CHECKING:  # workers do without SQLAlchemy
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

BOOTSTRAP = Actor("system:bootstrap")
RESUMER = Actor("system:resumer")
RETENTION = Actor("system:retention")
ZONE_RULES = Actor("system:zone_rules")
"""Parts of onthedot that change what people have defined. Deletes by retention are not audited one by one."""

_ACT_AS = """SELECT set_config('onthedot.actor', $1, true), set_config('onthedot.request_id', $2, true),
                    set_config('onthedot.client', $3, true)"""


async def act_as(connection: Connection, actor: Actor) -> None:
    """Say who is behind this transaction. Without it a change counts as the SQL session's."""
    await connection.execute(_ACT_AS, *_settings(actor))


async def name_actor(connection: "AsyncConnection", actor: Actor) -> None:
    """Say who is behind this transaction, as `act_as` does."""
    await connection.exec_driver_sql(_ACT_AS, _settings(actor))


@asynccontextmanager
async def acting_as(engine: "AsyncEngine", actor: Actor) -> "AsyncIterator[AsyncConnection]":
    """Open a transaction whose changes count as this actor's."""
    async with engine.begin() as connection:
        await name_actor(connection, actor)
        yield connection


async def note_action(
    connection: Connection,
    action: str,
    target_id: object,
    *,
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object],
    reason: str | None = None,
) -> None:
    """Write the audit row of something done by hand, in its transaction, which says by whom (`act_as`).

    `action` is such as `execution.cancel`.
    """
    target_type = action.partition(".")[0]
    taken = None if before is None else _json(before)
    await connection.execute(
        load("note_action"), action, target_type, str(target_id), taken, _json(after), reason
    )


def _settings(actor: Actor) -> tuple[str, str, str]:
    """Return the settings that the log's defaults read; an empty one counts as none."""
    return actor.name, actor.request_id or "", actor.client or ""


def _json(columns: Mapping[str, object]) -> str:
    return msgspec.json.encode(columns).decode()
