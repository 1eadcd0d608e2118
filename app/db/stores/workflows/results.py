"""What steps have returned: for those that refer to it, and for handlers that ask for it."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol
from uuid import UUID

import msgspec

from app.db.pools import Connection
from app.db.queries import load
from app.db.stores.workflows.definitions import DefinitionStore
from app.domain.errors import NotFound
from app.domain.ids import shard_of
from app.domain.recordable import RESULT_LIMIT_BYTES
from app.domain.workflows.rules import StepStatus
from app.domain.workflows.run_keys import Round

UPSTREAM_LIMIT_BYTES = 8 * 1024 * 1024
"""Of one step, for a handler: as much as a process of its own can be told."""
CLOCKS_DIFFER = timedelta(hours=1)
RUN_STATES = load("run_states")


class _Lasting(Protocol):
    """What has been under way since an instant, at another one."""

    started_at: datetime
    now: datetime


class Span(NamedTuple):
    """When executions may have ended: the history is partitioned by that."""

    since: datetime
    until: datetime

    @classmethod
    def of(cls, lasting: Sequence[_Lasting]) -> "Span":
        """Return the span of what runs have executed so far; workers' ideas of the time are milliseconds off."""
        return cls(
            min(each.started_at for each in lasting), max(each.now for each in lasting) + CLOCKS_DIFFER
        )


class Wanted(NamedTuple):
    """A step that has completed."""

    run_id: UUID
    step: str
    round: int
    instances: int
    is_mapped: bool


class TooLarge(msgspec.Struct, frozen=True):
    """Results that are more than was asked for, and how many bytes they are; None: not even kept whole."""

    bytes: int | None

    def words(self, limit_bytes: int) -> str:
        """Return what is wrong with them."""
        if self.bytes is None:
            return f"more than the {RESULT_LIMIT_BYTES:,} bytes that are kept of a result"
        return f"{self.bytes:,} bytes; no more than {limit_bytes:,} can be handed on"


class ResultsTooLarge(Exception):
    """The steps before this one have returned more than a handler can be told."""

    category = "configuration_error"


async def results_of(
    connection: Connection, wanted: Collection[Wanted], *, span: Span, limit_bytes: int
) -> dict[tuple[UUID, str], Any]:
    """Return what steps have returned: of one that maps over a list, a list; `TooLarge` of one that is more."""
    if not wanted:
        return {}
    asked = [(one.run_id, one.step, one.round) for one in wanted]
    rows = await connection.fetch(
        load("step_results"), *map(list, zip(*asked, strict=True)), *span, limit_bytes
    )
    mapped = {(one.run_id, one.step): one.instances for one in wanted if one.is_mapped}
    found: dict[tuple[UUID, str], Any] = {
        (one.run_id, one.step): [None] * one.instances if one.is_mapped else None for one in wanted
    }
    for run_id, step, index, result, size, is_truncated in rows:
        key = (run_id, step)
        if isinstance(found[key], TooLarge):
            continue
        if is_truncated or (size is not None and size > limit_bytes):
            found[key] = TooLarge(None if is_truncated else int(size))
        elif key in mapped:
            found[key][index] = msgspec.json.decode(result or "null")
        else:
            found[key] = msgspec.json.decode(result or "null")
    return found


async def upstream_of(connection: Connection, definitions: DefinitionStore, step: Round) -> dict[str, Any]:
    """Return what the steps have returned that a step depends on; null of those that have not completed.

    Raises `NotFound`, `ResultsTooLarge`.
    """
    run = await connection.fetchrow(load("run_definition"), shard_of(step.run_id), step.run_id)
    if run is None:
        raise NotFound(f"there is no workflow run {step.run_id}")
    definition = await definitions.get(connection, run["workflow_id"], run["version"])
    depends_on = definition.graph.steps[step.step].depends_on
    rows = await connection.fetch(RUN_STATES, [shard_of(step.run_id)], [step.run_id])
    wanted = [
        Wanted(step.run_id, key, number, instances, definition.graph.steps[key].map is not None)
        for key, status, number, instances in zip(
            *(rows[0][name] for name in ("steps", "statuses", "rounds", "instances")), strict=True
        )
        if key in depends_on and status == StepStatus.COMPLETED
    ]
    found = await results_of(
        connection,
        wanted,
        span=Span(run["started_at"], run["now"] + CLOCKS_DIFFER),
        limit_bytes=UPSTREAM_LIMIT_BYTES,
    )
    total = sum(len(msgspec.json.encode(result)) for result in found.values())
    if total > UPSTREAM_LIMIT_BYTES or any(isinstance(result, TooLarge) for result in found.values()):
        most = f"{UPSTREAM_LIMIT_BYTES:,} bytes"
        raise ResultsTooLarge(
            f"{', '.join(depends_on)} have returned more than {most}: too much for ctx.upstream"
        )
    return {key: found.get((step.run_id, key)) for key in depends_on}
