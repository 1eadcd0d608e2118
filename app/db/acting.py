"""Transactions in the name of somebody: the one that a request has, or one of their own."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import cast

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.actors import act_as, acting_as
from app.db.pools import Connection, Pool
from app.db.transactions import Transaction
from app.domain.access import Actor, Principal


@asynccontextmanager
async def acting(
    engine: AsyncEngine, by: Principal, within: Transaction | None = None
) -> AsyncIterator[AsyncConnection]:
    """Give a transaction whose changes the audit triggers put down to this user.

    Without `within` it is committed at the end; else who opened that one commits it.
    """
    if within is not None:
        yield await within.connection()
        return
    async with acting_as(engine, by.actor) as connection:
        yield connection


@asynccontextmanager
async def acting_in(pool: Pool, actor: Actor, within: Transaction | None = None) -> AsyncIterator[Connection]:
    """Give a transaction for statements of the hot path, as `acting` does."""
    if within is not None:
        yield await within.driver()
        return
    async with pool.acquire() as pooled, pooled.transaction():
        connection = cast("Connection", pooled)
        await act_as(connection, actor)
        yield connection


@asynccontextmanager
async def reading(engine: AsyncEngine, within: Transaction | None = None) -> AsyncIterator[AsyncConnection]:
    """Give a connection to read by: `within` shows what that transaction has changed, and takes no second one."""
    if within is not None:
        yield await within.connection()
        return
    async with engine.connect() as connection:
        yield connection


def once_committed(within: Transaction | None, call: Callable[[], None]) -> None:
    """Do something after the commit: of `within`, or of a transaction that is over already."""
    if within is None:
        call()
    else:
        within.once_committed(call)
