"""Definitions of workflows. A version never changes, so what has been read once holds for ever."""

from collections import OrderedDict
from datetime import datetime
from uuid import UUID

import asyncpg
import msgspec

from app.db.actors import note_action
from app.db.pools import Connection, Pool
from app.db.queries import load
from app.domain.admission import Overlap
from app.domain.errors import NotFound
from app.domain.ids import shard_of
from app.domain.workflows.definition import Step, WorkflowBody, WorkflowPatch
from app.domain.workflows.graph import Graph

KEPT_BYTES = 64 * 1024 * 1024
"""Of definitions in memory, as JSON."""
_STEPS = msgspec.json.Decoder(list[Step])


class Definition(msgspec.Struct, frozen=True):
    """A version of a workflow."""

    version: int
    body: WorkflowBody
    graph: Graph
    created_by: str
    created_at: datetime


class DefinitionStore:
    """Reads definitions; the last ones read stay in memory."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[UUID, int], tuple[Definition, int]] = OrderedDict()
        self._bytes = 0

    async def newest(self, connection: "Connection | Pool", workflow_id: UUID) -> Definition:
        """Return what new runs of a workflow are made of. Raises `NotFound`."""
        found = await self._read(connection, workflow_id, None)
        if found is None:
            raise NotFound(f"there is no workflow {workflow_id}")
        return found

    async def get(self, connection: "Connection | Pool", workflow_id: UUID, version: int) -> Definition:
        """Return a version. Raises `NotFound`."""
        kept = self._kept.get((workflow_id, version))
        if kept is not None:
            self._kept.move_to_end((workflow_id, version))
            return kept[0]
        found = await self._read(connection, workflow_id, version)
        if found is None:
            raise NotFound(f"there is no version {version} of the workflow {workflow_id}")
        return found

    async def _read(
        self, connection: "Connection | Pool", workflow_id: UUID, version: int | None
    ) -> Definition | None:
        row = await connection.fetchrow(
            load("workflow_definition"), shard_of(workflow_id), workflow_id, version
        )
        if row is None:
            return None
        definition = _definition(row)
        self._keep((workflow_id, definition.version), definition, len(row["steps"]))
        return definition

    def _keep(self, key: tuple[UUID, int], definition: Definition, size: int) -> None:
        if key in self._kept:
            return
        self._kept[key] = (definition, size)
        self._bytes += size
        while self._bytes > KEPT_BYTES and len(self._kept) > 1:
            _, (_, freed) = self._kept.popitem(last=False)
            self._bytes -= freed


async def define(connection: Connection, workflow_id: UUID, body: WorkflowBody, *, by: str) -> int:
    """Add a version to a workflow within a transaction; return its number."""
    steps = msgspec.json.encode(body.steps).decode()
    version: int = await connection.fetchval(
        load("define_workflow"),
        shard_of(workflow_id), workflow_id, steps, body.overlap, body.deadline_seconds, by,
    )  # fmt: skip
    return version


async def redefine(connection: Connection, workflow_id: UUID, patch: WorkflowPatch, *, by: str) -> None:
    """Add a version that differs by a patch from the newest one. The transaction has locked the workflow's job.

    Raises `NotFound`.
    """
    newest = await DefinitionStore().newest(connection, workflow_id)
    body = msgspec.structs.replace(newest.body, **patch.given())
    version = await define(connection, workflow_id, body, by=by)
    before, after = (_summary(v, b) for v, b in ((newest.version, newest.body), (version, body)))
    await note_action(connection, "workflow.redefine", workflow_id, before=before, after=after)


def _summary(version: int, body: WorkflowBody) -> dict[str, object]:
    """Return what the audit log is told: what exactly a step was is kept with the version."""
    return {
        "definition_version": version,
        "steps": [step.key for step in body.steps],
        "overlap": body.overlap,
        "deadline_seconds": body.deadline_seconds,
    }


def _definition(row: asyncpg.Record) -> Definition:
    body = WorkflowBody(
        steps=_STEPS.decode(row["steps"]),
        overlap=Overlap(row["overlap"]),
        deadline_seconds=row["deadline_seconds"],
    )
    return Definition(row["version"], body, Graph(body.steps), row["created_by"], row["created_at"])
