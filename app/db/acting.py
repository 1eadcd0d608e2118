"""Transactions in the name of somebody."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.actors import acting_as
from app.domain.access import Principal


@asynccontextmanager
async def acting(engine: AsyncEngine, by: Principal) -> AsyncIterator[AsyncConnection]:
    """Open a transaction whose changes the audit triggers put down to this user."""
    async with acting_as(engine, f"user:{by.user_id}") as connection:
        yield connection
