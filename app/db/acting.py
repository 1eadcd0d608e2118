"""Transactions in the name of somebody."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.domain.access import Principal


@asynccontextmanager
async def acting(engine: AsyncEngine, by: Principal) -> AsyncIterator[AsyncConnection]:
    """Open a transaction whose changes the audit triggers put down to this user."""
    async with engine.begin() as connection:
        await connection.execute(select(func.set_config("onthedot.actor", f"user:{by.user_id}", True)))  # noqa: FBT003 - SQL's
        yield connection
