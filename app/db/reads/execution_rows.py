"""An execution as a row of a list shows it: what a row needs and no more, alike from live ones and the history."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import (
    Boolean,
    ColumnElement,
    Row,
    Select,
    Table,
    Text,
    and_,
    case,
    cast,
    func,
    literal,
    null,
    select,
    union_all,
)

from app.db.reads.execution_walks import DEFAULT_DELAY_MS, Delays
from app.db.tables import execution_history, executions, jobs, workers
from app.db.tables.metadata import timestamptz
from app.domain.ids import shard_of
from app.domain.statuses import Disposition, Status

ERROR_CHARACTERS = 300


class ListedExecution(msgspec.Struct, frozen=True, kw_only=True):
    """An execution as a row of a list shows it."""

    execution_id: UUID
    job_id: UUID
    user_id: str
    task_id: str
    queue: str
    priority: int
    status: Status
    disposition: Disposition
    trigger: str
    retried_from: UUID | None
    scheduled_time: datetime
    due_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    lateness_ms: float | None
    attempt_number: int
    max_attempts: int
    worker_id: UUID | None
    worker_host: str | None
    error_type: str | None
    error_message: str | None
    """Its beginning."""
    cancelling: bool
    held: bool
    """Its job is paused."""
    job_name: str | None
    max_delay_ms: int
    """What its queue promises."""

    @property
    def is_late(self) -> bool:
        """Tell whether it started later than its queue promises."""
        return self.lateness_ms is not None and self.lateness_ms > self.max_delay_ms


_SHARED = ("shard", "execution_id", "job_id", "user_id", "task_id", "queue", "priority", "status", "trigger",
           "retried_from", "scheduled_time", "due_at", "first_due_at", "attempt_number", "max_attempts", "worker_id",
           "lateness_ms")  # fmt: skip


def _half(table: Table, *more: ColumnElement[Any]) -> Select[Any]:
    c = table.c
    error_type = c.error["type"].as_string().label("error_type")
    message = func.left(c.error["message"].as_string(), ERROR_CHARACTERS).label("error_message")
    return select(*(c[name] for name in _SHARED), error_type, message, *more)


def _live_half() -> Select[Any]:
    c = executions.c
    began = case((c.status == Status.RUNNING.value, c.claimed_at))  # until its start is written
    return _half(
        executions,
        func.coalesce(c.started_at, began).label("started_at"),
        cast(null(), timestamptz).label("completed_at"),
        cast(literal(Disposition.PENDING.value), Text).label("disposition"),
        c.cancel_requested_at.is_not(None).label("cancelling"),
        c.held,
    )


def _finished_half() -> Select[Any]:
    c = execution_history.c
    no = cast(literal(False), Boolean)  # noqa: FBT003 - a value, not a flag
    return _half(
        execution_history,
        c.started_at,
        c.completed_at,
        c.disposition,
        no.label("cancelling"),
        no.label("held"),
    )


HALVES = {"executions": _live_half(), "execution_history": _finished_half()}


def some_statement(execution_ids: Collection[UUID]) -> Select[Any]:
    """Select executions by their ids. None ended before it was made, which its id tells: older days are left out."""
    shards = {shard_of(execution_id) for execution_id in execution_ids}
    first = (
        min(one.int for one in execution_ids) >> 80 & (1 << 47) - 1
    )  # ids come from anywhere: some year we know
    ended = execution_history.c.completed_at.between(
        datetime.fromtimestamp(first / 1000 - 1, UTC), func.now() + timedelta(minutes=1)
    )
    halves = [
        half.where(table.c.shard.in_(shards), table.c.execution_id.in_(execution_ids), *more)
        for table, half, more in (
            (executions, HALVES["executions"], ()),
            (execution_history, HALVES["execution_history"], (ended,)),
        )
    ]
    return named(select(union_all(*halves).subquery()))


def named(rows: Select[Any]) -> Select[Any]:
    """Add what the job and the worker's host are called; both may be gone."""
    found = rows.subquery()
    return (
        select(found, jobs.c.name.label("job_name"), workers.c.host.label("worker_host"))
        .outerjoin(jobs, and_(jobs.c.shard == found.c.shard, jobs.c.job_id == found.c.job_id))
        .outerjoin(workers, workers.c.worker_id == found.c.worker_id)
        .order_by(found.c.scheduled_time.desc(), found.c.execution_id.desc())
    )


def listed(row: Row[Any], delays: Delays) -> ListedExecution:
    """Return a row as people read it."""
    values = dict(row._mapping)
    del values["shard"]
    first_due_at = values.pop("first_due_at")
    if (
        values["lateness_ms"] is None and values["started_at"] is not None
    ):  # began a moment ago, not written yet
        values["lateness_ms"] = (values["started_at"] - first_due_at) / timedelta(milliseconds=1)
    values |= {
        "status": Status(values["status"]),
        "disposition": Disposition(values["disposition"]),
        "max_delay_ms": delays.get(values["queue"], DEFAULT_DELAY_MS),
    }
    return ListedExecution(**values)
