"""`/workers`: the processes that claim and run executions."""

from typing import Any
from uuid import UUID

from litestar import Controller, Request, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath

from app.api.answers import ACTIONS, LISTS, READS
from app.api.paging import DEFAULT_LIMIT, CursorText, Limit, window
from app.db.reads.paging import Page
from app.db.reads.workers import WorkerReads, WorkerView
from app.db.stores.fleet import FleetStore
from app.db.transactions import Transaction
from app.domain.access import Principal, Role

ApiRequest = Request[Principal, Any, Any]


class WorkersController(Controller):
    """Workers."""

    path = "/workers"
    tags = ("Workers",)

    @get(operation_id="listWorkers", responses=LISTS)
    async def list_workers(
        self,
        worker_reads: NamedDependency[WorkerReads],
        limit: Limit = DEFAULT_LIMIT,
        cursor: CursorText = None,
    ) -> Page[WorkerView]:
        """List workers, the last started first.

        One that stopped in good order is listed for an hour longer, a lost one for a day.
        """
        return await worker_reads.list_page(window(limit, cursor, {}))

    @get("/{worker_id:uuid}", operation_id="getWorker", responses=READS)
    async def get_worker(
        self, worker_id: FromPath[UUID], worker_reads: NamedDependency[WorkerReads]
    ) -> WorkerView:
        """Get a worker."""
        return await worker_reads.get(worker_id)

    @post("/{worker_id:uuid}/actions/drain", operation_id="drainWorker", status_code=200, responses=ACTIONS)
    async def drain_worker(
        self,
        request: ApiRequest,
        worker_id: FromPath[UUID],
        fleet: NamedDependency[FleetStore],
        worker_reads: NamedDependency[WorkerReads],
        transaction: NamedDependency[Transaction],
    ) -> WorkerView:
        """Have a worker claim nothing more and finish what it has; it hears of that with its next heartbeat."""
        request.user.require(Role.OPERATOR)
        await fleet.drain(worker_id, by=request.user, within=transaction)
        return await worker_reads.get(worker_id, within=transaction)
