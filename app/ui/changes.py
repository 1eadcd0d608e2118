"""The changes of a job, a workflow among them, as its page shows them."""

from typing import Any
from uuid import UUID

from app.db.reads.audit import AuditReads

SHOWN_CHANGES = 30


async def shown_changes(audit_reads: AuditReads, job_id: UUID, before: int | None) -> dict[str, Any]:
    """Return a page of changes, those older than `before`; `older` leads to the next page where there is one."""
    changes = await audit_reads.of("job", str(job_id), limit=SHOWN_CHANGES + 1, before=before)
    more = len(changes) > SHOWN_CHANGES
    return {
        "changes": changes[:SHOWN_CHANGES],
        "older": changes[SHOWN_CHANGES - 1].audit_id if more else None,
        "before": before,
    }
