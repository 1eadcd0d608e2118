"""`/schedules/preview`: what a schedule would do."""

from typing import Annotated

import msgspec
from litestar import post
from litestar.di import NamedDependency
from litestar.params import JSONBody

from app.api.answers import problem_answers
from app.api.body import StrictBody
from app.api.instants import read_instant
from app.db.clock import DatabaseClock
from app.db.stores.zones import ZoneAliasStore
from app.db.transactions import Transaction
from app.domain.schedule_preview import SchedulePreview, preview
from app.domain.stored_schedule import JobSchedule

MOST_OCCURRENCES = 100


class PreviewRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A schedule as in `POST /jobs`."""

    schedule: JobSchedule
    after: str | float | None = None
    """RFC 3339 or Unix seconds: as if the job were created then. Now, unless said."""
    count: Annotated[int, msgspec.Meta(ge=1, le=MOST_OCCURRENCES)] = 5


@post(
    "/schedules/preview",
    operation_id="previewSchedule",
    status_code=200,
    tags=["Schedules"],
    dto=StrictBody[PreviewRequest],
    return_dto=None,
    responses=problem_answers(400, 401, 409, 413, 415, 422, 503),
)
async def preview_schedule(
    data: JSONBody[PreviewRequest],
    aliases: NamedDependency[ZoneAliasStore],
    clock: NamedDependency[DatabaseClock],
    transaction: NamedDependency[Transaction],  # noqa: ARG001 - it takes an Idempotency-Key as every POST does
) -> SchedulePreview:
    """Tell when a schedule fires, in words and as instants, and what to know about it. Nothing is stored.

    What creating a job would refuse is refused here with the same code and pointer.
    """
    now = read_instant(data.after, name="after") or clock.now()
    return preview(data.schedule, now=now, count=data.count, aliases=await aliases.all())
