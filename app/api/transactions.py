"""One transaction for each POST: what it changes, and, under an `Idempotency-Key`, the key and the answer."""

from typing import Any

import msgspec
from litestar import Request
from litestar.datastructures import Headers
from litestar.enums import ScopeType
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from app.api.errors import on_late_error
from app.api.idempotency import IDEMPOTENCY_KEY, IdempotencyKey, idempotent
from app.db.transactions import Transaction, Transactions
from app.domain.access import Principal
from app.domain.idempotency import StoredAnswer

ApiRequest = Request[Principal, Any, Any]

_KEY = "onthedot_transaction"
_KEPT_HEADERS = ("ETag", "Location", "Cache-Control")
"""What says something of the answer; the others are of the request or follow from the body."""


class OneTransaction(ASGIMiddleware):
    """Commits what a POST has changed if its answer is a success, before anybody sees the answer.

    Handlers get the transaction as `transaction` and hand it to stores and reads as `within`. It takes no connection
    before one of them needs it: what is looked up beforehand must not wait for a second one.
    """

    scopes = (ScopeType.HTTP,)

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Serve a request. Raises what opening a transaction raises."""
        if scope.get("method") != "POST":
            await next_app(scope, receive, send)
            return
        request: ApiRequest = Request(scope, receive)
        transactions: Transactions = request.app.state.transactions
        repeat, held = await idempotent(request, request.headers.get(IDEMPOTENCY_KEY)), HeldAnswer()
        async with transactions.open(request.user, repeat) as transaction:
            scope["state"][_KEY] = transaction
            await next_app(scope, receive, held.take)
            failure = await _commit(transaction, held) if held.is_success else None
        if failure is None:
            await held.release(send)
        else:  # the framework takes the held answer for sent, and would not answer anything else
            answer = on_late_error(request, failure).to_asgi_response(app=None, request=request)
            await answer(scope, receive, send)


class HeldAnswer:
    """An answer that is not sent yet."""

    def __init__(self) -> None:
        self._messages: list[Any] = []

    async def take(self, message: Message) -> None:
        """Take a part of the answer."""
        self._messages.append(message)

    async def release(self, send: Send) -> None:
        """Send what was taken."""
        for message in self._messages:
            await send(message)

    @property
    def is_success(self) -> bool:
        """Tell whether the request was carried out."""
        return bool(self._messages) and 200 <= self._messages[0]["status"] < 300

    def stored(self) -> StoredAnswer:
        """Return the answer as it is kept."""
        start, *parts = self._messages
        headers = Headers(start["headers"])
        return StoredAnswer(
            start["status"],
            b"".join(part.get("body", b"") for part in parts),
            {name: headers[name] for name in _KEPT_HEADERS if name in headers},
        )


async def _commit(transaction: Transaction, held: HeldAnswer) -> Exception | None:
    """Commit, and return why that failed if it did."""
    try:
        await transaction.commit(held.stored())
    except Exception as error:  # noqa: BLE001 - whatever it is, it becomes the answer
        return error
    return None


async def current_transaction(request: ApiRequest, idempotency_key: IdempotencyKey = None) -> Transaction:  # noqa: ARG001 - described by being here
    """Return the transaction of a request."""
    transaction: Transaction = request.scope["state"][_KEY]
    return transaction


def keep_instead(transaction: Transaction, document: msgspec.Struct) -> None:
    """Let a repeat read this document where the answer holds what must not be stored."""
    transaction.kept_body = msgspec.json.encode(document)
