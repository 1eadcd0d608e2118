"""`/livez`, `/readyz` and the pages behind problem types."""

import asyncio

import msgspec
from litestar import Response, get
from litestar.di import NamedDependency
from litestar.params import FromPath

from app.api.answers import problem_answers
from app.api.problems import TITLES
from app.db.errors import is_unavailable
from app.db.health import DatabaseHealth
from app.domain.errors import NotFound


class Health(msgspec.Struct, frozen=True):
    """Whether this server works; `reason` where it does not."""

    status: str
    reason: str | None = None


class ProblemType(msgspec.Struct, frozen=True):
    """A problem code explained."""

    code: FromPath[str]
    status: int
    title: str


@get("/livez", operation_id="live", tags=["Health"])
async def livez() -> Health:
    """Tell that the process runs; restart it where this does not answer."""
    return Health("live")


@get("/readyz", operation_id="ready", tags=["Health"])
async def readyz(
    database: NamedDependency[DatabaseHealth], stopping: NamedDependency[asyncio.Event]
) -> Response[Health]:
    """Tell whether requests can be served: the server is not about to stop, and the database answers, accepts writes
    and has this version's schema."""
    if stopping.is_set():
        return Response(Health("unavailable", "the server is stopping"), status_code=503)
    reason: str | None
    try:
        reason = await database.problem()
    except Exception as error:
        if not is_unavailable(error):
            raise
        reason = "the database cannot be reached"
    return Response(Health("unavailable" if reason else "ready", reason), status_code=503 if reason else 200)


@get(
    "/problems/{code:str}",
    operation_id="explainProblem",
    tags=["Health"],
    responses=problem_answers(400, 404),
)
async def explain_problem(code: FromPath[str]) -> ProblemType:
    """Explain a problem code; the `type` of a problem document leads here."""
    if code not in TITLES:
        raise NotFound("there is no such problem code")
    status, title = TITLES[code]
    return ProblemType(code, status.value, title)


HEALTH_HANDLERS = [livez, readyz, explain_problem]
