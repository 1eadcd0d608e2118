"""Users, keys, login links and sessions. Of every secret only a hash is stored."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, delete, exists, func, insert, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.actors import BOOTSTRAP, acting_as
from app.db.tables import api_keys, login_tokens, sessions, users
from app.domain.access import Principal, Role, hash_secret, shown_prefix

LOGIN_TOKEN_LIFE = timedelta(minutes=15)
SESSION_LIFE = timedelta(hours=12)
USE_NOTED_EVERY = timedelta(minutes=1)
ADMIN_USER_ID = "admin"


class AccessStore:
    """Who somebody is, by what they hold. Every moment is the database's."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def principal_of_key(self, key: str) -> Principal | None:
        """Return the owner of an API key that is valid now, and note that it was used."""
        found = api_keys.c.key_hash == hash_secret(key)
        principal = await self._principal(api_keys, found, _valid_key())
        if principal is not None:
            await self._note_use(found)
        return principal

    async def principal_of_session(self, session: str) -> Principal | None:
        """Return who is logged in under a session cookie."""
        found = sessions.c.session_hash == hash_secret(session)
        return await self._principal(sessions, found, sessions.c.expires_at > func.now())

    async def user_exists(self, user_id: str) -> bool:
        """Tell whether there is such a user."""
        async with self._engine.connect() as connection:
            return bool(await connection.scalar(select(exists().where(users.c.user_id == user_id))))

    async def has_admin_key(self) -> bool:
        """Tell whether some administrator holds a key that is valid now."""
        owner = (api_keys.c.user_id == users.c.user_id, users.c.role == Role.ADMIN.value)
        held = exists().where(*owner, _valid_key())
        async with self._engine.connect() as connection:
            return bool(await connection.scalar(select(held)))

    async def ensure_admin(self, key: str, *, key_id: UUID) -> None:
        """Make sure that the admin exists and that this key is one of theirs."""
        async with acting_as(self._engine, BOOTSTRAP) as connection:
            admin = {"user_id": ADMIN_USER_ID, "name": "Administrator", "role": Role.ADMIN.value}
            await connection.execute(upsert(users).values(**admin).on_conflict_do_nothing())
            row = {
                "key_id": key_id,
                "user_id": ADMIN_USER_ID,
                "name": "bootstrap",
                "prefix": shown_prefix(key),
            }
            added = upsert(api_keys).values(**row, key_hash=hash_secret(key)).on_conflict_do_nothing()
            await connection.execute(added)

    async def add_login_token(self, token: str, *, user_id: str) -> None:
        """Let this token log the user in once, within `LOGIN_TOKEN_LIFE`."""
        async with self._engine.begin() as connection:
            await connection.execute(delete(login_tokens).where(login_tokens.c.expires_at < func.now()))
            values = {"token_hash": hash_secret(token), "user_id": user_id}
            await connection.execute(
                insert(login_tokens).values(**values, expires_at=func.now() + LOGIN_TOKEN_LIFE)
            )

    async def redeem_login_token(self, token: str) -> str | None:
        """Use a token up and return whose it was."""
        used = delete(login_tokens).where(
            login_tokens.c.token_hash == hash_secret(token), login_tokens.c.expires_at > func.now()
        )
        async with self._engine.begin() as connection:
            user_id: str | None = await connection.scalar(used.returning(login_tokens.c.user_id))
            return user_id

    async def open_session(self, session: str, *, user_id: str) -> None:
        """Begin a session of `SESSION_LIFE`."""
        async with self._engine.begin() as connection:
            await connection.execute(delete(sessions).where(sessions.c.expires_at < func.now()))
            values = {"session_hash": hash_secret(session), "user_id": user_id}
            await connection.execute(insert(sessions).values(**values, expires_at=func.now() + SESSION_LIFE))

    async def close_session(self, session: str) -> None:
        """End a session."""
        async with self._engine.begin() as connection:
            await connection.execute(delete(sessions).where(sessions.c.session_hash == hash_secret(session)))

    async def _note_use(self, found: ColumnElement[bool]) -> None:
        """Write down when a key was last used, at most once a minute: requests must not queue for its row."""
        stale = or_(api_keys.c.last_used_at.is_(None), api_keys.c.last_used_at < func.now() - USE_NOTED_EVERY)
        async with self._engine.connect() as connection:
            if await connection.scalar(select(exists().where(found, stale))):
                await connection.execute(update(api_keys).where(found, stale).values(last_used_at=func.now()))
                await connection.commit()

    async def _principal(self, source: Any, *conditions: ColumnElement[bool]) -> Principal | None:  # noqa: ANN401 - a table
        statement = select(users.c.user_id, users.c.role).join(source, source.c.user_id == users.c.user_id)
        async with self._engine.connect() as connection:
            row = (await connection.execute(statement.where(*conditions))).one_or_none()
        return Principal(row.user_id, Role(row.role)) if row else None


def _valid_key() -> ColumnElement[bool]:
    return or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > func.now())
