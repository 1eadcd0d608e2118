"""Queues: pausing and resuming them."""

from typing import Any

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Template

from app.db.reads.queues import QueueReads
from app.db.stores.queues import QueueStore
from app.domain.access import Role
from app.ui.actions import Verb, ask_back
from app.ui.flash import Flash
from app.ui.forms import Form
from app.ui.visit import Visit, done

PAUSE = Verb(
    "Pause",
    "paused",
    ("Nothing of it begins until it is resumed; what runs goes on, what comes due waits.",),
    asks_reason=True,
)


@get("/queues/{queue:str}/pause")
async def ask_to_pause_queue(
    visit: NamedDependency[Visit], queue: FromPath[str], queue_reads: NamedDependency[QueueReads]
) -> Template:
    """Ask why a queue shall be paused."""
    visit.principal.require(Role.OPERATOR)
    name = (await queue_reads.get(queue)).queue
    return await ask_back(visit, PAUSE, "queue", url=f"/queues/{name}/pause", names=[name])


@post("/queues/{queue:str}/pause")
async def pause_queue(
    visit: NamedDependency[Visit], queue: FromPath[str], queues: NamedDependency[QueueStore]
) -> Response[Any]:
    """Pause a queue."""
    visit.principal.require(Role.OPERATOR)
    form = await Form.sent(visit.request)
    await queues.pause(queue, reason=form.text("reason"), until=None, by=visit.principal)
    return done(visit, Flash(f"The queue {queue} is paused."), to=form.back_to("/"))


@post("/queues/{queue:str}/resume")
async def resume_queue(
    visit: NamedDependency[Visit], queue: FromPath[str], queues: NamedDependency[QueueStore]
) -> Response[Any]:
    """Resume a queue."""
    visit.principal.require(Role.OPERATOR)
    form = await Form.sent(visit.request)
    await queues.resume(queue, by=visit.principal)
    return done(visit, Flash(f"The queue {queue} goes on."), to=form.back_to("/"))


QUEUE_PAGES = [ask_to_pause_queue, pause_queue, resume_queue]
