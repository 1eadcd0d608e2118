"""`Idempotency-Key` and `wait`: sending a request twice, and waiting for what it started."""

from typing import Annotated, Any

from litestar import Request, Response
from litestar.params import HeaderParameter, QueryParameter

from app.domain.access import Principal
from app.domain.idempotency import IdempotentRequest, StoredAnswer, idempotent_request
from app.intake.waiting import MAX_WAIT_SECONDS

IdempotencyKey = Annotated[
    str | None,
    HeaderParameter(
        name="Idempotency-Key",
        description="Any text of yours, kept for 24 hours: a repeat gets the first answer and has no effect",
    ),
]
Wait = Annotated[
    float | None, QueryParameter(ge=0, le=MAX_WAIT_SECONDS, description="Seconds to wait for the execution")
]


async def idempotent(request: Request[Principal, Any, Any], key: str | None) -> IdempotentRequest | None:
    """Return the request under its key; None where it carries none. Raises `InvalidInput`."""
    return idempotent_request(
        key,
        user_id=request.user.user_id,
        method=request.method,
        path=request.url.path,
        body=await request.body() if key is not None else b"",
    )


def replayed(answer: StoredAnswer) -> Response[Any]:
    """Answer as the first time, and say so."""
    return Response(
        answer.body,
        status_code=answer.status_code,
        media_type="application/json",
        headers={"Idempotency-Replayed": "true"},
    )
