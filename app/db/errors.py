"""Which database errors mean what, for those who must not know the driver."""

from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg

from app.startup import CannotStart

_UNREACHABLE: tuple[type[BaseException], ...] = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # a connection that broke, or was being shut down, in the middle of something
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.LockNotAvailableError,
    asyncpg.QueryCanceledError,
    asyncpg.InsufficientResourcesError,
    asyncpg.TransactionRollbackError,  # a deadlock's victim, a transaction that could not be serialized
)


def count_as_unreachable(*kinds: type[BaseException]) -> None:
    """Have errors of these kinds, too, mean that the database cannot serve now."""
    global _UNREACHABLE  # noqa: PLW0603 - SQLAlchemy's are added where it is loaded, which costs a process 30 MB
    _UNREACHABLE += kinds


def is_unavailable(error: BaseException) -> bool:
    """Tell whether the database cannot serve this now, so that the same request may succeed later."""
    return isinstance(_driver_error(error), _UNREACHABLE)


def is_lock_timeout(error: BaseException) -> bool:
    """Tell whether a statement has waited for a lock as long as it may."""
    return isinstance(_driver_error(error), asyncpg.LockNotAvailableError)


def is_bad_value(error: BaseException) -> bool:
    """Tell whether PostgreSQL, or the driver on its way there, refused a value (SQLSTATE class 22)."""
    cause = _driver_error(error)
    return isinstance(cause, asyncpg.DataError | UnicodeEncodeError)


def took_too_long(error: BaseException) -> bool:
    """Tell whether a statement was stopped by its timeout."""
    return isinstance(_driver_error(error), asyncpg.QueryCanceledError)


_UNUSABLE = (
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InvalidSchemaNameError,
    asyncpg.InsufficientPrivilegeError,
    asyncpg.UndefinedTableError,
    asyncpg.UndefinedColumnError,
)
"""Wrong password, no such database, no right to use it, or not migrated."""


@contextmanager
def database_of_settings() -> Iterator[None]:
    """Tell in one line why the database cannot be used, while a process starts. Raises `CannotStart`."""
    try:
        yield
    except Exception as error:
        cause = _driver_error(error)
        passes = is_unavailable(cause)
        if not (passes or isinstance(cause, _UNUSABLE)):
            raise
        why = str(cause) or type(cause).__name__
        text = f"the database of ONTHEDOT_DATABASE_URL cannot be used: {why}"
        raise CannotStart(text, status=1, passes=passes) from None


def _driver_error(error: BaseException) -> BaseException:
    """Unwrap what SQLAlchemy wraps twice: its own error around its adapter's around asyncpg's."""
    while type(error).__module__.startswith("sqlalchemy"):
        inner = getattr(error, "orig", None) or error.__cause__
        if inner is None:
            return error
        error = inner
    return error
