"""What an execution that waits for other jobs waits for."""

from uuid import UUID

from sqlalchemy import and_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.stores.dependencies import UPSTREAM_ENDS
from app.db.tables import executions, jobs
from app.domain.explanation import Reason, ReasonCode
from app.domain.ids import shard_of


async def dependencies_in_the_way(connection: AsyncConnection, execution_id: UUID) -> list[Reason]:
    """Return a reason for each job whose occurrence has not completed."""
    e, j = executions.c, jobs.c
    asked = (
        select(j.depends_on, e.scheduled_time)
        .join_from(executions, jobs, and_(j.shard == e.shard, j.job_id == e.job_id))
        .where(e.shard == shard_of(execution_id), e.execution_id == execution_id)
    )
    row = (await connection.execute(asked)).one_or_none()
    if row is None or not row.depends_on:
        return []
    upstream: list[UUID] = row.depends_on
    shards = [shard_of(job_id) for job_id in upstream]
    instants = [row.scheduled_time] * len(upstream)
    ends = await connection.exec_driver_sql(UPSTREAM_ENDS, (shards, upstream, instants))
    return [
        _reason(upstream[end.nth - 1], end.status, end.execution_id)
        for end in ends
        if end.status != "COMPLETED" or not end.is_known
    ]


def _reason(job_id: UUID, status: str | None, execution_id: UUID | None) -> Reason:
    if status is None or execution_id is None:
        detail, link = "has yet to be planned up to its instant", f"/api/v1/jobs/{job_id}"
    else:
        detail, link = f"is {status} (execution {execution_id})", f"/api/v1/executions/{execution_id}"
    return Reason(
        code=ReasonCode.DEPENDENCY, detail=f"It waits for the job {job_id}, which {detail}.", link=link
    )
