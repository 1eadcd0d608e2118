"""The audit log as people read it."""

from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import Select, select
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.tables import audit_log


class ChangeView(msgspec.Struct, frozen=True, kw_only=True):
    """One change: who made it, to what, from what to what."""

    audit_id: int
    at: datetime
    actor: str
    """`user:ada`, `system:resumer` or `sql:LOGIN`."""
    action: str
    target_type: str
    target_id: str
    before: dict[str, Any] | None
    """The columns that changed, as they were; null for what is new."""
    after: dict[str, Any] | None
    reason: str | None
    request_id: str | None
    client: str


class AuditReads:
    """Reads the audit log."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def of(
        self, target_type: str, target_id: str, *, limit: int, before: int | None = None
    ) -> list[ChangeView]:
        """Return the newest changes of one thing, the newest first; `before`: those older than that one."""
        statement = _newest(target_type, target_id, limit)
        if before is not None:
            statement = statement.where(audit_log.c.audit_id < before)
        async with self._engine.connect() as connection:
            rows = (await connection.execute(statement)).all()
        return [msgspec.convert(row, ChangeView, from_attributes=True) for row in rows]


def _newest(target_type: str, target_id: str, limit: int) -> Select[Any]:
    columns = (audit_log.c[name] for name in ChangeView.__struct_fields__)
    return (
        select(*columns)
        .where(audit_log.c.target_type == target_type, audit_log.c.target_id == target_id)
        .order_by(audit_log.c.audit_id.desc())
        .limit(limit)
    )
