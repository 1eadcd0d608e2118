"""Which indexes a list of executions is read along, and what it is narrowed to beside them.

Over millions of rows a filter is cheap where an index has the rows in the order of the list. Those that none has are
looked at row by row, and then the list looks through so many rows at a time and says so.
"""

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from sqlalchemy import ColumnElement, Table, and_, case, func, literal_column, or_

from app.db.tables import IS_LEASED, IS_UNLEASED, execution_history, executions
from app.domain.ids import shard_of
from app.domain.statuses import FINAL, LEASED, LIVE, UNLEASED, Disposition, Status

DEFAULT_DELAY_MS = 2_000
"""Where a queue promises nothing else."""
Delays = Mapping[str, int]
"""`max_delay_ms` of the queues that have one: what starts later was late."""


class ListFilters(msgspec.Struct, frozen=True, kw_only=True):
    """What a list of executions is narrowed to."""

    statuses: frozenset[Status] = frozenset(Status)
    job_id: UUID | None = None
    user_id: str | None = None
    task_id: str | None = None
    queue: str | None = None
    priority: int | None = None
    late: bool = False
    """Started later than the queue promises, or has been waiting for longer."""
    since: datetime | None = None
    until: datetime | None = None
    """Of `scheduled_time`; `until` itself is left out."""
    include_future: bool = False
    """Also those whose instant has not come and that nobody has leased."""


class Walk(NamedTuple):
    """A way along one index: the rows that it passes, and which of them are shown."""

    table: Table
    along: list[ColumnElement[bool]]
    only: list[ColumnElement[bool]]


def walks_of(filters: ListFilters, delays: Delays) -> list[Walk]:
    """Return the ways that together pass each row of the list once."""
    return [*_live_walks(filters, delays), *_history_walks(filters, delays)]


def _live_walks(filters: ListFilters, delays: Delays) -> Iterator[Walk]:
    """Return a way for each index: what nobody has leased lies in the order of the list, what is leased is sorted."""
    statuses = filters.statuses & set(LIVE)
    if not statuses:
        return
    along, only = _shared(executions, filters)
    if not filters.include_future:
        along.append(executions.c.scheduled_time <= func.now())
    if filters.late:
        only.append(_is_late_now(delays))
    if filters.job_id is not None:
        yield _narrowed(Walk(executions, along, only), statuses, LIVE)
        return
    for half, is_half in ((UNLEASED, IS_UNLEASED), (LEASED, IS_LEASED)):
        if its := statuses & set(half):
            yield _narrowed(Walk(executions, [*along, is_half], only), its, half)


def _narrowed(walk: Walk, statuses: Collection[Status], passed: Collection[Status]) -> Walk:
    """Return a way on which some of the statuses are shown that it passes."""
    status, shown = walk.table.c.status, sorted(statuses)
    if len(shown) == len(passed):
        return walk
    if len(shown) == 1:
        return Walk(walk.table, [*walk.along, status == _fixed(*shown)], walk.only)
    return Walk(walk.table, walk.along, [*walk.only, status.in_([_fixed(one) for one in shown])])


def _history_walks(filters: ListFilters, delays: Delays) -> Iterator[Walk]:
    statuses = filters.statuses & set(FINAL)
    if not statuses:
        return
    c = execution_history.c
    along, only = _shared(execution_history, filters)
    if filters.job_id is not None or filters.user_id is not None:
        if Status.COMPLETED not in statuses:
            along.append(c.status != _fixed(Status.COMPLETED))  # as their partial indexes say it
        if len(statuses) < len(FINAL):
            only.append(c.status.in_([_fixed(status) for status in sorted(statuses)]))
        yield Walk(execution_history, along, only + ([_was_late(delays)] if filters.late else []))
    elif filters.late:
        yield from _late_walks(statuses, along, only, delays)
    elif len(statuses) == len(FINAL):
        yield Walk(execution_history, along, only)
    else:
        yield from _walks_of_statuses(statuses, along, only)


def _late_walks(
    statuses: frozenset[Status], along: list[Any], only: list[Any], delays: Delays
) -> Iterator[Walk]:
    """What completed late has an index; of what did not complete, whatever started late is picked out."""
    if Status.COMPLETED in statuses:
        late = execution_history.c.disposition == _fixed(Disposition.LATE)
        yield Walk(execution_history, [*along, late], only)
    yield from _walks_of_statuses(statuses - {Status.COMPLETED}, along, [*only, _was_late(delays)])


def _walks_of_statuses(statuses: frozenset[Status], along: list[Any], only: list[Any]) -> Iterator[Walk]:
    c = execution_history.c
    for status in sorted(statuses):
        its = c.status == _fixed(status)
        if status is Status.COMPLETED:
            yield Walk(execution_history, along, [*only, its])  # nearly all are: along the list itself
        else:
            yield Walk(execution_history, [*along, its, c.status != _fixed(Status.COMPLETED)], only)


def _shared(
    table: Table, filters: ListFilters
) -> tuple[list[ColumnElement[bool]], list[ColumnElement[bool]]]:
    """Return what an index has in the order of the list, and what is looked at row by row."""
    c = table.c
    along: list[ColumnElement[bool]] = []
    only: list[ColumnElement[bool]] = []
    if filters.job_id is not None:
        along += [c.shard == shard_of(filters.job_id), c.job_id == filters.job_id]
    if filters.user_id is not None:
        (only if filters.job_id else along).append(c.user_id == filters.user_id)
    if filters.since is not None:
        along.append(c.scheduled_time >= filters.since)
    if filters.until is not None:
        along.append(c.scheduled_time < filters.until)
    only += [
        c[name] == value
        for name in ("task_id", "queue", "priority")
        if (value := getattr(filters, name)) is not None
    ]
    return along, only


def _was_late(delays: Delays) -> ColumnElement[bool]:
    c = execution_history.c
    return or_(
        c.disposition == _fixed(Disposition.LATE),
        and_(c.disposition != _fixed(Disposition.RAN), c.lateness_ms > _most_ms(execution_history, delays)),
    )


def _is_late_now(delays: Delays) -> ColumnElement[bool]:
    """Late is also what should have started by now: it can only become later."""
    c = executions.c
    began = case(
        (c.status == _fixed(Status.RUNNING), func.coalesce(c.started_at, c.claimed_at)), else_=func.now()
    )
    so_far = 1000 * func.extract("epoch", began - c.first_due_at)
    return func.coalesce(c.lateness_ms, so_far) > _most_ms(executions, delays)


def _most_ms(table: Table, delays: Delays) -> ColumnElement[Any]:
    if not delays:
        return literal_column(str(DEFAULT_DELAY_MS))
    return case(dict(delays), value=table.c.queue, else_=DEFAULT_DELAY_MS)


def _fixed(value: Status | Disposition) -> ColumnElement[str]:
    """Return a name of ours as it stands in the statement: partial indexes are found by what they say."""
    return literal_column(f"'{value.value}'")
