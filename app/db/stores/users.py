"""Users: create, read, change, delete, list."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET
from sqlalchemy import Row, delete, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.acting import acting
from app.db.job_creation import without_new_jobs
from app.db.queries import load
from app.db.tables import jobs, users
from app.db.transactions import Transaction
from app.domain.access import Principal, Role
from app.domain.errors import Conflict, NotFound, PreconditionFailed
from app.domain.hourly_quota import hour_of
from app.domain.ids import least_id
from app.domain.limits import rate_columns, rate_limit
from app.domain.users import (
    HIDDEN,
    JobQuotas,
    NotificationPreferences,
    UserPatch,
    UserRequest,
    check_preferences,
)


class User(msgspec.Struct, frozen=True, kw_only=True):
    """A user as it is stored, secrets and all."""

    user_id: str
    name: str
    email: str | None
    role: Role
    notification_preferences: NotificationPreferences
    job_quotas: JobQuotas
    created_at: datetime
    updated_at: datetime
    version: int


class UserStore:
    """Reads and writes users. Each method is one transaction; who changes something is `by`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def get(self, user_id: str) -> User:
        """Return a user. Raises `NotFound`."""
        async with self._engine.connect() as connection:
            row = (await connection.execute(select(users).where(users.c.user_id == user_id))).one_or_none()
        return _found(row, user_id)

    async def list_page(self, *, limit: int, after: str | None) -> list[User]:
        """Return up to `limit` users in the order of their ids, those after `after`."""
        statement = select(users).order_by(users.c.user_id).limit(limit)
        if after is not None:
            statement = statement.where(users.c.user_id > after)
        async with self._engine.connect() as connection:
            return [_user(row) for row in await connection.execute(statement)]

    async def create(self, request: UserRequest, *, by: Principal, within: Transaction | None = None) -> User:
        """Store a new user. Raises `InvalidInput`, and `Conflict` where the id is taken."""
        check_preferences(request.notification_preferences, request.email)
        values = msgspec.structs.asdict(request) | {"name": request.name or request.user_id}
        values |= rate_columns(msgspec.structs.asdict(values.pop("job_quotas")))
        async with acting(self._engine, by, within) as connection:
            try:
                row = (await connection.execute(insert(users).values(**values).returning(users))).one()
            except IntegrityError:
                raise Conflict(f"there is a user {request.user_id} already") from None
        return _user(row)

    async def change(self, user_id: str, patch: UserPatch, *, by: Principal, if_version: int | None) -> User:
        """Change parts of a user and raise its version.

        Raises `InvalidInput`, `NotFound`, `PreconditionFailed`, and `Conflict` where no admin would be left, or where
        transactions that create jobs do not end while a quota by the hour is set.
        """
        # What this hour has created is counted, so that nobody may be creating anything meanwhile.
        limits = _limits_hours(patch)
        async with without_new_jobs(self._engine, by) if limits else acting(self._engine, by) as connection:
            locked = await _lock_with_admins(connection, user_id)
            current = _found(locked.get(user_id), user_id)
            if if_version is not None and if_version != current.version:
                changed_at = current.updated_at.isoformat()
                raise PreconditionFailed(f"the user was changed at {changed_at}; read it anew")
            changed = _patched(current, patch)
            check_preferences(changed.notification_preferences, changed.email)
            if changed.role is not Role.ADMIN:
                _keep_an_admin(user_id, locked)
            if limits and current.job_quotas.max_jobs_per_hour is None:
                await _recount(connection, user_id)
            return await _write(connection, changed)

    async def delete(self, user_id: str, *, by: Principal) -> None:
        """Delete a user with their keys and sessions. Raises `NotFound`.

        Raises `Conflict` while they own jobs, and where no admin would be left.
        """
        async with self._engine.connect() as connection:
            await _require_unneeded(connection, user_id)  # most refusals need no lock on jobs
        # No foreign key leads from jobs here: each insert of a job would lock its owner's row.
        async with without_new_jobs(self._engine, by) as connection:
            await _require_unneeded(connection, user_id)
            await connection.execute(delete(users).where(users.c.user_id == user_id))


def _limits_hours(patch: UserPatch) -> bool:
    quotas = patch.job_quotas
    return quotas is not UNSET and isinstance(quotas.max_jobs_per_hour, int)


async def _recount(connection: AsyncConnection, user_id: str) -> None:
    await connection.exec_driver_sql(load("forget_hours"), (user_id,))
    now = (await connection.execute(select(func.now()))).scalar_one()
    await connection.exec_driver_sql(load("recount_hours"), (user_id, least_id(hour_of(now))))


_QUOTAS = tuple(JobQuotas.__struct_fields__)


async def _require_unneeded(connection: AsyncConnection, user_id: str) -> None:
    locked = await _lock_with_admins(connection, user_id)
    _found(locked.get(user_id), user_id)
    _keep_an_admin(user_id, locked)
    if await connection.scalar(select(jobs.c.job_id).where(jobs.c.user_id == user_id).limit(1)):
        raise Conflict(f"{user_id} owns jobs; delete them first")


async def _lock_with_admins(connection: AsyncConnection, user_id: str) -> dict[str, Row[Any]]:
    """Lock a user and all admins, always in one order: two admins may demote each other at once."""
    statement = select(users).where(or_(users.c.user_id == user_id, users.c.role == Role.ADMIN.value))
    ordered = statement.order_by(users.c.user_id).with_for_update(key_share=True)
    return {row.user_id: row for row in await connection.execute(ordered)}


def _keep_an_admin(user_id: str, locked: dict[str, Row[Any]]) -> None:
    admins = {name for name, row in locked.items() if row.role == Role.ADMIN.value}
    if admins == {user_id}:
        raise Conflict(f"{user_id} is the last admin; make somebody else one first")


async def _write(connection: AsyncConnection, user: User) -> User:
    values = msgspec.structs.asdict(user) | rate_columns(msgspec.structs.asdict(user.job_quotas))
    for name in ("job_quotas", "created_at"):
        del values[name]
    values |= {"version": user.version + 1, "updated_at": func.now()}
    changed = update(users).where(users.c.user_id == user.user_id).values(**values).returning(users)
    return _user((await connection.execute(changed)).one())


def _patched(user: User, patch: UserPatch) -> User:
    given = _given(patch)
    for name in ("notification_preferences", "job_quotas"):
        if name in given:
            given[name] = msgspec.structs.replace(getattr(user, name), **_given(given[name]))
    return msgspec.structs.replace(user, **given)


def _given(patch: msgspec.Struct) -> dict[str, Any]:
    given = {name: value for name, value in msgspec.structs.asdict(patch).items() if value is not UNSET}
    if given.get("webhook_secret") == HIDDEN:
        del given["webhook_secret"]  # what was read comes back
    return given


def _found(row: Row[Any] | None, user_id: str) -> User:
    if row is None:
        raise NotFound(f"there is no user {user_id!r:.140}")
    return _user(row)


def _user(row: Row[Any]) -> User:
    values = dict(row._mapping)
    stored = values.pop("notification_preferences")
    del values["limited"]
    values["rate_limit"] = rate_limit(values)
    known = _known(stored, NotificationPreferences.__struct_fields__)
    return User(
        job_quotas=JobQuotas(**{name: values.pop(name) for name in _QUOTAS}),
        notification_preferences=msgspec.convert(known, NotificationPreferences),
        role=Role(values.pop("role")),
        **values,
    )


def _known(stored: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the fields that this version knows: during a rolling deploy a newer one may have written more."""
    return {name: stored[name] for name in names if name in stored}
