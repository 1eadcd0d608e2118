"""`/executions`: what ran, runs and will run."""

from typing import Any
from uuid import UUID

import msgspec
from litestar import Controller, MediaType, Request, Response, get
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery

from app.api.answers import LISTS, READS
from app.api.paging import (
    DEFAULT_LIMIT,
    MAX_LIMIT,
    CursorText,
    FilterText,
    Include,
    Limit,
    read_text_cursor,
    window,
    write_text_cursor,
)
from app.db.reads.attempts import AttemptView, LogLineView, StoryReads
from app.db.reads.executions import ExecutionFilters, ExecutionReads, ExecutionView
from app.db.reads.explanations import ExplanationReads
from app.db.reads.paging import Page
from app.domain.errors import InvalidCursor
from app.domain.explanation import Explanation
from app.domain.statuses import Status


class Attempts(msgspec.Struct, frozen=True):
    """All attempts of an execution, the first one first."""

    items: list[AttemptView]


class ExecutionsController(Controller):
    """Executions."""

    path = "/executions"
    tags = ("Executions",)

    @get(operation_id="listExecutions", responses=LISTS)
    async def list_executions(
        self,
        execution_reads: NamedDependency[ExecutionReads],
        limit: Limit = DEFAULT_LIMIT,
        cursor: CursorText = None,
        include: Include = None,
        user_id: FilterText = None,
        task_id: FilterText = None,
        queue: FilterText = None,
        status: FromQuery[Status | None] = None,
    ) -> Page[ExecutionView]:
        """List executions, the newest instant first.

        Without `status` those that have started, have ended or whose instant has come; `include=future` shows all.
        """
        chosen = {"user_id": user_id, "task_id": task_id, "queue": queue, "status": status}
        filters = ExecutionFilters(
            user_id=user_id, task_id=task_id, queue=queue, status=status, include_future=include is not None
        )
        return await execution_reads.list_page(filters, window(limit, cursor, chosen | {"include": include}))

    @get("/{execution_id:uuid}", operation_id="getExecution", responses=READS)
    async def get_execution(
        self, execution_id: FromPath[UUID], execution_reads: NamedDependency[ExecutionReads]
    ) -> ExecutionView:
        """Get an execution."""
        return await execution_reads.get(execution_id)

    @get(
        "/{execution_id:uuid}/attempts",
        operation_id="listAttempts",
        responses=READS,
    )
    async def list_attempts(
        self,
        execution_id: FromPath[UUID],
        execution_reads: NamedDependency[ExecutionReads],
        story_reads: NamedDependency[StoryReads],
    ) -> Attempts:
        """List an execution's attempts."""
        return Attempts(await story_reads.attempts(await execution_reads.get(execution_id)))

    @get("/{execution_id:uuid}/explain", operation_id="explainExecution", responses=READS)
    async def explain_execution(
        self, execution_id: FromPath[UUID], explanations: NamedDependency[ExplanationReads]
    ) -> Explanation:
        """Say why an execution waits: what the claim decides by, who is ahead of it, and when it may start."""
        return await explanations.get(execution_id)

    @get(
        "/{execution_id:uuid}/logs",
        operation_id="listLogLines",
        responses=READS,
    )
    async def list_log_lines(
        self,
        request: Request[Any, Any, Any],
        execution_id: FromPath[UUID],
        execution_reads: NamedDependency[ExecutionReads],
        story_reads: NamedDependency[StoryReads],
        cursor: CursorText = None,
        limit: Limit = MAX_LIMIT,
    ) -> Response[Any]:
        """Read the captured log: JSON, or text where `Accept: text/plain` asks for it."""
        await execution_reads.get(execution_id)
        limit = min(limit, MAX_LIMIT)
        lines = await story_reads.log_page(execution_id, limit=limit + 1, after=_position(cursor))
        page = lines[:limit]
        following = (
            write_text_cursor(f"{page[-1].attempt_number}.{page[-1].sequence}")
            if len(lines) > limit
            else None
        )
        if request.accept.best_match([MediaType.JSON, MediaType.TEXT], MediaType.JSON) == MediaType.TEXT:
            return Response(
                "".join(f"{line.message}\n" for line in page),
                media_type=MediaType.TEXT,
                headers=_link(request, following),
            )
        return Response(Page[LogLineView](page, following))


def _position(cursor: str | None) -> tuple[int, int]:
    """Read where the last page of a log ended: attempt and line."""
    text = read_text_cursor(cursor)
    if text is None:
        return (0, 0)
    attempt, _, sequence = text.partition(".")
    if not all(part.isascii() and part.isdecimal() and len(part) < 10 for part in (attempt, sequence)):
        raise InvalidCursor("this is no cursor of ours; use `next_cursor` of the same log", pointer="/cursor")
    return int(attempt), int(sequence)


def _link(request: Request[Any, Any, Any], following: str | None) -> dict[str, str]:
    """Lead text readers to the next page (RFC 8288)."""
    return {"Link": f'<{request.url.path}?cursor={following}>; rel="next"'} if following else {}
