"""`Idempotency-Key`: sending a request twice."""

from typing import Annotated, Any
from urllib.parse import urlencode

from litestar import Request, Response
from litestar.params import HeaderParameter

from app.domain.access import Principal
from app.domain.idempotency import IdempotentRequest, StoredAnswer, idempotent_request

IDEMPOTENCY_KEY = "Idempotency-Key"
IdempotencyKey = Annotated[
    str | None,
    HeaderParameter(
        name=IDEMPOTENCY_KEY,
        description=(
            "Any text of yours, such as a UUID, kept for 24 hours. A repeat of the request has no effect and gets "
            "the first answer, with `Idempotency-Replayed: true`; another request under the same key is refused. "
            "What failed has had no effect and may be sent again."
        ),
    ),
]


async def idempotent(request: Request[Principal, Any, Any], key: str | None) -> IdempotentRequest | None:
    """Return the request under its key; None where it carries none. Raises `InvalidInput`.

    How long it waits makes it no other request.
    """
    if key is None:
        return None
    query = sorted(item for item in request.query_params.multi_items() if item[0] != "wait")
    return idempotent_request(
        key,
        user_id=request.user.user_id,
        method=request.method,
        path=request.url.path,
        query=urlencode(query),
        body=await request.body(),
    )


def replayed(answer: StoredAnswer) -> Response[bytes]:
    """Answer as the first time, and say so."""
    return Response(
        answer.body,
        status_code=answer.status_code,
        media_type="application/json",
        headers=answer.headers | {"Idempotency-Replayed": "true"},
    )
