"""`/users/{user_id}/keys`: API keys. A key is shown once, when it is made."""

from typing import Any
from uuid import UUID

import msgspec
from litestar import Controller, Request, Response, delete, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody

from app.api.answers import CREATES, DELETES, READS
from app.api.body import StrictBody
from app.api.future import read_future_instant
from app.api.paging import DEFAULT_LIMIT, CursorText, Limit, window
from app.api.transactions import keep_instead
from app.db.clock import DatabaseClock
from app.db.reads.paging import Page
from app.db.stores.keys import ApiKey, KeyStore
from app.db.stores.users import UserStore
from app.db.transactions import Transaction
from app.domain.access import Principal, Role, new_secret
from app.domain.ids import uuid7
from app.domain.users import KeyRequest

ApiRequest = Request[Principal, Any, Any]


SHOWN_ONCE = (
    "The key was shown in the first answer and is not stored. "
    "If it is lost, delete this one and create another under a new Idempotency-Key."
)


class KeyCreated(ApiKey, frozen=True, kw_only=True, omit_defaults=True):
    """The new key. A repeat of the request finds the same `key_id`, but `key` is never shown again."""

    key: str | None
    note: str | None = None
    """Why `key` is null."""


class KeysController(Controller):
    """API keys. Operators manage their own, admins those of everybody."""

    path = "/users/{user_id:str}/keys"
    tags = ("Users",)

    @get(operation_id="listKeys", responses=READS)
    async def list_keys(
        self,
        request: ApiRequest,
        user_id: FromPath[str],
        keys: NamedDependency[KeyStore],
        users: NamedDependency[UserStore],
        limit: Limit = DEFAULT_LIMIT,
        cursor: CursorText = None,
    ) -> Page[ApiKey]:
        """List a user's keys, the newest first; the keys themselves are not kept."""
        _require_owner(request.user, user_id)
        page = await keys.list_page(user_id, window(limit, cursor, {"user_id": user_id}))
        if not page.items:
            await users.get(user_id)  # tells "none yet" from "no such user"
        return page

    @post(operation_id="createKey", dto=StrictBody[KeyRequest], return_dto=None, responses=CREATES | READS)
    async def create_key(
        self,
        request: ApiRequest,
        user_id: FromPath[str],
        keys: NamedDependency[KeyStore],
        clock: NamedDependency[DatabaseClock],
        transaction: NamedDependency[Transaction],
        data: JSONBody[KeyRequest | None] = None,
    ) -> Response[KeyCreated]:
        """Make a key. The answer is the only place where it is ever shown.

        Under an `Idempotency-Key` too: the key is not stored, so the answer to a repeat has null in its place.
        """
        _require_owner(request.user, user_id)
        wish, key = data or KeyRequest(), new_secret()
        stored = await keys.create(
            key,
            key_id=uuid7(clock.unix_microseconds()),
            user_id=user_id,
            name=wish.name,
            expires_at=read_future_instant(wish.expires_at, name="expires_at", now=clock.now()),
            by=request.user,
            within=transaction,
        )
        document = KeyCreated(**msgspec.structs.asdict(stored), key=key)
        keep_instead(transaction, msgspec.structs.replace(document, key=None, note=SHOWN_ONCE))
        return Response(document, headers={"Cache-Control": "no-store"})

    @delete("/{key_id:uuid}", operation_id="deleteKey", responses=DELETES)
    async def delete_key(
        self,
        request: ApiRequest,
        user_id: FromPath[str],
        key_id: FromPath[UUID],
        keys: NamedDependency[KeyStore],
    ) -> None:
        """Delete a key; within 5 s it is refused everywhere."""
        _require_owner(request.user, user_id)
        await keys.delete(user_id, key_id, by=request.user)


def _require_owner(principal: Principal, user_id: str) -> None:
    """Let operators at their own keys, admins at all. Raises `Forbidden`."""
    principal.require(Role.OPERATOR if principal.user_id == user_id else Role.ADMIN)
