"""The registry of worker processes."""

from uuid import UUID

import msgspec

from app.db.pools import Connection
from app.db.queries import load


class WorkerIdentity(msgspec.Struct, frozen=True):
    """One start of a worker process. A restarted one is another worker, whatever its host is called."""

    worker_id: UUID
    host: str
    pid: int
    version: str
    queues: tuple[str, ...]
    slots: int
    labels: dict[str, str] = {}
    """What it offers to tasks that require it."""
    cpu_cores: float = 1.0
    """Of its host, for all workers there."""
    memory_mb: int = 1024
    suspects_only: bool = False
    """It runs what must run alone."""


async def beat(
    connection: Connection,
    worker: WorkerIdentity,
    *,
    running: int,
    draining: bool,
    why_draining: str | None = None,
    stopped: bool = False,
) -> bool:
    """Say that the worker lives and what it carries; return whether it shall drain.

    `why_draining`: what has made it stop claiming by itself; what it has said once stays.
    """
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
        why_draining,
        worker.suspects_only,
        msgspec.json.encode(worker.labels).decode(),
        worker.cpu_cores,
        worker.memory_mb,
    )
    return asked_to_drain
