"""API keys of users. Of a key only a hash is stored, and the first characters by which people recognise it."""

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import Row, delete, insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.acting import acting
from app.db.reads.paging import Page, Window, older_than
from app.db.tables import api_keys
from app.db.transactions import Transaction
from app.domain.access import Principal, hash_secret, shown_prefix
from app.domain.cursors import write_cursor
from app.domain.errors import NotFound


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """An API key as it is read: never the key itself."""

    key_id: UUID
    user_id: str
    name: str
    prefix: str
    """Its first characters."""
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    """To the minute."""


_SHOWN = tuple(api_keys.c[name] for name in ApiKey.__struct_fields__)


class KeyStore:
    """Reads and writes API keys; who changes something is `by`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def list_page(self, user_id: str, window: Window) -> Page[ApiKey]:
        """Return a page of a user's keys, the newest first."""
        c = api_keys.c
        statement = (
            select(*_SHOWN)
            .where(c.user_id == user_id, *older_than(window.cursor, c.created_at, c.key_id))
            .order_by(c.created_at.desc(), c.key_id.desc())
            .limit(window.limit + 1)
        )
        async with self._engine.connect() as connection:
            keys = [_key(row) for row in await connection.execute(statement)]
        page, more = keys[: window.limit], len(keys) > window.limit
        cursor = write_cursor(page[-1].created_at, page[-1].key_id, window.filters) if more else None
        return Page(page, cursor)

    async def create(
        self,
        key: str,
        *,
        key_id: UUID,
        user_id: str,
        name: str,
        expires_at: datetime | None,
        by: Principal,
        within: Transaction | None = None,
    ) -> ApiKey:
        """Store the hash of a key. Raises `NotFound` where there is no such user."""
        values = {"key_id": key_id, "user_id": user_id, "name": name, "expires_at": expires_at}
        secrets = {"prefix": shown_prefix(key), "key_hash": hash_secret(key)}
        statement = insert(api_keys).values(**values, **secrets).returning(*_SHOWN)
        async with acting(self._engine, by, within) as connection:
            try:
                return _key((await connection.execute(statement)).one())
            except IntegrityError:
                raise NotFound(f"there is no user {user_id!r:.140}") from None

    async def delete(self, user_id: str, key_id: UUID, *, by: Principal) -> None:
        """Delete a key of a user. Raises `NotFound`."""
        statement = delete(api_keys).where(api_keys.c.user_id == user_id, api_keys.c.key_id == key_id)
        async with acting(self._engine, by) as connection:
            if (await connection.execute(statement)).rowcount == 0:
                raise NotFound(f"{user_id!r:.140} has no key {key_id}")


def _key(row: Row[Any]) -> ApiKey:
    return ApiKey(**row._mapping)
