"""The registry of worker processes."""

from uuid import UUID

import msgspec

from app.db.pools import Connection, Pool
from app.db.queries import load


class WorkerIdentity(msgspec.Struct, frozen=True):
    """One start of a worker process. A restarted one is another worker, whatever its host is called."""

    worker_id: UUID
    host: str
    pid: int
    version: str
    queues: tuple[str, ...]
    slots: int


_TIMELINE = "SELECT ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int8"


async def timeline(pool: Pool) -> int:
    """Return the timeline of the primary. A promotion begins a new one, so that no fencing token repeats."""
    number: int = await pool.fetchval(_TIMELINE)
    return number


async def beat(
    connection: Connection, worker: WorkerIdentity, *, running: int, draining: bool, stopped: bool = False
) -> bool:
    """Say that the worker lives and what it carries; return whether it shall drain."""
    asked_to_drain: bool = await connection.fetchval(
        load("heartbeat"),
        worker.worker_id,
        worker.host,
        worker.pid,
        worker.version,
        list(worker.queues),
        worker.slots,
        running,
        draining,
        stopped,
    )
    return asked_to_drain
