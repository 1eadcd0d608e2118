"""`/queues`: classes of work with promises of their own."""

from typing import Any

from litestar import Controller, Request, Response, get, patch, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody

from app.api.answers import ACTIONS, CHANGES, CREATES, LISTS, READS
from app.api.body import StrictBody
from app.api.future import read_future_instant
from app.api.job_actions import PauseRequest
from app.api.paging import DEFAULT_LIMIT, MAX_LIMIT, CursorText, Limit, read_text_cursor, write_text_cursor
from app.api.preconditions import IfMatch, etag, required_version
from app.db.clock import DatabaseClock
from app.db.reads.paging import Page
from app.db.reads.queues import QueueReads, QueueView
from app.db.stores.limits import AT_ONCE_SECONDS, LimitStore
from app.db.stores.queues import QueueStore
from app.db.transactions import Transaction
from app.domain.access import Principal, Role
from app.domain.queues import QueuePatch, QueueRequest

ApiRequest = Request[Principal, Any, Any]


class QueuesController(Controller):
    """Queues."""

    path = "/queues"
    tags = ("Queues",)

    @get(operation_id="listQueues", responses=LISTS)
    async def list_queues(
        self,
        queue_reads: NamedDependency[QueueReads],
        limit: Limit = DEFAULT_LIMIT,
        cursor: CursorText = None,
    ) -> Page[QueueView]:
        """List queues in the order of their names."""
        limit = min(limit, MAX_LIMIT)
        found = await queue_reads.list_page(limit=limit + 1, after=read_text_cursor(cursor))
        following = write_text_cursor(found[limit - 1].queue) if len(found) > limit else None
        return Page(found[:limit], following)

    @post(operation_id="createQueue", dto=StrictBody[QueueRequest], return_dto=None, responses=CREATES)
    async def create_queue(
        self,
        request: ApiRequest,
        data: JSONBody[QueueRequest],
        queues: NamedDependency[QueueStore],
        queue_reads: NamedDependency[QueueReads],
        transaction: NamedDependency[Transaction],
    ) -> Response[QueueView]:
        """Create a queue."""
        request.user.require(Role.OPERATOR)
        await queues.create(data, by=request.user, within=transaction)
        location = {"Location": f"/api/v1/queues/{data.queue}"}
        return _answer(await queue_reads.get(data.queue, within=transaction), headers=location)

    @get("/{queue:str}", operation_id="getQueue", responses=READS)
    async def get_queue(
        self, queue: FromPath[str], queue_reads: NamedDependency[QueueReads]
    ) -> Response[QueueView]:
        """Get a queue."""
        return _answer(await queue_reads.get(queue))

    @patch(
        "/{queue:str}",
        operation_id="changeQueue",
        dto=StrictBody[QueuePatch],
        return_dto=None,
        responses=CHANGES,
    )
    async def change_queue(
        self,
        request: ApiRequest,
        queue: FromPath[str],
        data: JSONBody[QueuePatch],
        queues: NamedDependency[QueueStore],
        queue_reads: NamedDependency[QueueReads],
        limits: NamedDependency[LimitStore],
        if_match: IfMatch = None,
    ) -> Response[QueueView]:
        """Change parts of a queue; what is left out stays. Workers follow within seconds."""
        request.user.require(Role.OPERATOR)
        await queues.change(queue, data, by=request.user, if_version=required_version(if_match))
        await limits.apply_new(within_seconds=AT_ONCE_SECONDS)
        return _answer(await queue_reads.get(queue))

    @post(
        "/{queue:str}/actions/pause",
        operation_id="pauseQueue",
        status_code=200,
        dto=StrictBody[PauseRequest],
        return_dto=None,
        responses=ACTIONS,
    )
    async def pause_queue(
        self,
        request: ApiRequest,
        queue: FromPath[str],
        queues: NamedDependency[QueueStore],
        queue_reads: NamedDependency[QueueReads],
        clock: NamedDependency[DatabaseClock],
        transaction: NamedDependency[Transaction],
        data: JSONBody[PauseRequest | None] = None,
    ) -> Response[QueueView]:
        """Pause a queue: what waits in it waits on, what has begun goes on."""
        request.user.require(Role.OPERATOR)
        wish = data or PauseRequest()
        until = read_future_instant(wish.until, name="until", now=clock.now())
        await queues.pause(queue, reason=wish.reason, until=until, by=request.user, within=transaction)
        return _answer(await queue_reads.get(queue, within=transaction))

    @post("/{queue:str}/actions/resume", operation_id="resumeQueue", status_code=200, responses=ACTIONS)
    async def resume_queue(
        self,
        request: ApiRequest,
        queue: FromPath[str],
        queues: NamedDependency[QueueStore],
        queue_reads: NamedDependency[QueueReads],
        transaction: NamedDependency[Transaction],
    ) -> Response[QueueView]:
        """Resume a queue; one that is not paused stays as it is."""
        request.user.require(Role.OPERATOR)
        await queues.resume(queue, by=request.user, within=transaction)
        return _answer(await queue_reads.get(queue, within=transaction))


def _answer(queue: QueueView, *, headers: dict[str, str] | None = None) -> Response[QueueView]:
    return Response(queue, headers={"ETag": etag(queue.version)} | (headers or {}))
