"""The SQLAlchemy engine, for CRUD and lists. Workers do without: it takes 30 MB of each process that loads it."""

from typing import Any, TypeAlias

import msgspec
import sqlalchemy.exc
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from app.db.errors import count_as_unreachable
from app.db.pools import ACQUIRE_TIMEOUT_SECONDS, Connection, connect

Engine: TypeAlias = AsyncEngine

count_as_unreachable(sqlalchemy.exc.TimeoutError, sqlalchemy.exc.InterfaceError)


def open_engine(
    dsn: str, *, size: int, application_name: str, statement_timeout_seconds: float = 0
) -> AsyncEngine:
    """Make an SQLAlchemy engine that connects through the same function, so that one DSN means one thing."""

    async def creator() -> Connection:
        return await connect(
            dsn, application_name=application_name, statement_timeout_seconds=statement_timeout_seconds
        )

    return create_async_engine(
        "postgresql+asyncpg://",
        async_creator=creator,
        pool_size=size,
        max_overflow=0,
        pool_timeout=ACQUIRE_TIMEOUT_SECONDS,
        pool_pre_ping=True,
        json_serializer=_dump_json,
        json_deserializer=msgspec.json.decode,
    )


def _dump_json(value: Any) -> str:  # noqa: ANN401 - any JSON value
    return msgspec.json.encode(value).decode()
