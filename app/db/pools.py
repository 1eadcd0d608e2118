"""Connections and pools of asyncpg, for the hot path. What reads and writes by SQLAlchemy has `app.db.engine`."""

from typing import Any, TypeAlias

import asyncpg

from app.db.connection import StrictConnection
from app.db.primary import connect_to_primary

CONNECT_TIMEOUT_SECONDS = 10
ACQUIRE_TIMEOUT_SECONDS = 5
"""Longest wait for a free connection: a busy pool answers 503, it does not hang."""
SILENCE_SECONDS = 1.0
"""How much longer than a statement may take its answer is waited for. A server that works says itself that the time
is over; from one that is silent, or behind a network that is, nothing comes at all."""

ON_DEMAND_SECONDS = 10.0
KEPT_SECONDS = 300.0
"""How long a connection is kept that nobody uses. Each takes PostgreSQL some 8 MiB."""

# As text: generic in the stubs only.
Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"

_SESSION = {
    "timezone": "UTC",
    "jit": "off",  # compiling costs more than any statement here runs
    "idle_in_transaction_session_timeout": "60000",
    "client_connection_check_interval": "1000",  # what nobody waits for any more holds no locks
    # Citus only, ignored elsewhere: asyncpg's type introspection takes seconds on a worker node without it.
    "citus.override_table_visibility": "off",
}


async def connect(dsn: str, *, application_name: str, statement_timeout_seconds: float = 0) -> Connection:
    """Open one connection to the primary. `statement_timeout_seconds` 0: none."""
    settings = _SESSION | {"application_name": application_name}
    limits = _limits(settings, statement_timeout_seconds)
    return await connect_to_primary(dsn, connection_class=StrictConnection, **limits)


async def open_pool(
    dsn: str,
    *,
    size: int,
    application_name: str,
    statement_timeout_seconds: float = 0,
    by_index_only: bool = False,
    idle_in_transaction_seconds: float | None = None,
    on_demand: bool = False,
    is_reset: bool = False,
) -> Pool:
    """Open a pool of `size` connections, one of them at once unless it is `on_demand`.

    `is_reset`: what a session was set to or holds locks on ends when its connection is given back. That costs a round
    trip each time, as much as most statements; our own statements leave nothing behind.

    `by_index_only` is for sessions whose statements have indexes meant for them, or look at a whole shard anyway; but
    not BRIN indexes, which are read as bitmaps. A plan made while a table was all but empty reads it from end to end
    and sorts it, and is kept until the next ANALYZE: once 300,000 rows have come, a look takes 140 ms instead of
    0.3. A bitmap reads what has been deleted from the heap each time, and where rows come and go that is most of
    them: to count what a limit holds took 25 us a key instead of 3. And one plan serves all values: made anew for
    each shard it takes longer than most of these statements run (a claim 1.0 ms instead of 0.2); the partitions are
    chosen when it is run.
    """
    settings = _SESSION | {"application_name": application_name}
    if by_index_only:
        settings |= {
            "enable_seqscan": "off",
            "enable_bitmapscan": "off",
            "plan_cache_mode": "force_generic_plan",
        }
    if idle_in_transaction_seconds is not None:
        settings["idle_in_transaction_session_timeout"] = str(int(idle_in_transaction_seconds * 1000))
    return await asyncpg.create_pool(
        dsn,
        connect=connect_to_primary,
        connection_class=StrictConnection,
        reset=None if is_reset else _leave_as_it_is,
        min_size=0 if on_demand else 1,
        max_size=size,
        max_inactive_connection_lifetime=ON_DEMAND_SECONDS if on_demand else KEPT_SECONDS,
        **_limits(settings, statement_timeout_seconds),
    )


async def _leave_as_it_is(_connection: object) -> None:
    """Reset nothing: a transaction that was left open has been rolled back before."""


def _limits(settings: dict[str, str], statement_timeout_seconds: float) -> dict[str, Any]:
    """Return what keeps each statement within its time: settings for the server, and a limit here."""
    milliseconds = str(int(statement_timeout_seconds * 1000))
    return {
        "timeout": CONNECT_TIMEOUT_SECONDS,
        "command_timeout": statement_timeout_seconds + SILENCE_SECONDS if statement_timeout_seconds else None,
        "server_settings": settings | {"statement_timeout": milliseconds},
    }
