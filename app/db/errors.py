"""Which database errors mean what, for those who must not know the driver."""

import asyncpg
import sqlalchemy.exc

_UNREACHABLE = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.LockNotAvailableError,
    asyncpg.QueryCanceledError,
    asyncpg.InsufficientResourcesError,
)


def is_unavailable(error: BaseException) -> bool:
    """Tell whether the database cannot serve this now, so that the same request may succeed later."""
    cause = _driver_error(error)
    return isinstance(cause, (*_UNREACHABLE, sqlalchemy.exc.TimeoutError, sqlalchemy.exc.InterfaceError))


def is_bad_value(error: BaseException) -> bool:
    """Tell whether PostgreSQL, or the driver on its way there, refused a value (SQLSTATE class 22)."""
    cause = _driver_error(error)
    return isinstance(cause, asyncpg.DataError | UnicodeEncodeError)


def _driver_error(error: BaseException) -> BaseException:
    """Unwrap what SQLAlchemy wraps twice: its own error around its adapter's around asyncpg's."""
    while isinstance(error, sqlalchemy.exc.DBAPIError) or type(error).__module__.startswith(
        "sqlalchemy.dialects"
    ):
        inner = error.orig if isinstance(error, sqlalchemy.exc.DBAPIError) else error.__cause__
        if inner is None:
            return error
        error = inner
    return error
