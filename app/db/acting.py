"""Transactions in the name of somebody."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.actors import act_as, acting_as
from app.db.pools import Connection, Pool
from app.domain.access import Actor, Principal


@asynccontextmanager
async def acting(engine: AsyncEngine, by: Principal) -> AsyncIterator[AsyncConnection]:
    """Open a transaction whose changes the audit triggers put down to this user."""
    async with acting_as(engine, by.actor) as connection:
        yield connection


@asynccontextmanager
async def acting_in(pool: Pool, actor: Actor) -> AsyncIterator[Connection]:
    """Open a transaction of the hot path's pool whose changes the audit log puts down to this actor."""
    async with pool.acquire() as pooled, pooled.transaction():
        connection = cast("Connection", pooled)
        await act_as(connection, actor)
        yield connection
