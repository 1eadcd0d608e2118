"""What handlers do in the database: effects that commit with the completion, and effects that are done once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from app.db.pools import ACQUIRE_TIMEOUT_SECONDS, Connection, Pool
from app.db.queries import load
from app.db.stores.executions import Settlement, settle_on
from app.domain.claims import Claim

COMMIT_SECONDS = 30.0
"""How long a commit's answer is waited for before it is asked what became of it: a handler's own statements may take
longer, so these connections have no limit of their own."""


class LeaseLost(Exception):
    """The execution is somebody else's by now: nothing that this attempt does counts any more."""


class NoConnections(Exception):
    """This worker gives handlers no connections."""

    category = "configuration_error"


class HandlerTransaction:
    """A transaction of a handler. It commits together with the completion of its execution, or not at all."""

    def __init__(self, pool: Pool, pooled: "PoolConnectionProxy[asyncpg.Record]") -> None:
        self._pool = pool
        self._pooled = pooled
        self._transaction = pooled.transaction()

    @classmethod
    async def begin(cls, pool: Pool) -> "HandlerTransaction":
        """Begin one. Raises `TimeoutError` where every connection for such transactions is in use."""
        self = cls(pool, await pool.acquire(timeout=ACQUIRE_TIMEOUT_SECONDS))
        await self._transaction.start()
        return self

    @property
    def connection(self) -> Connection:
        """Return the connection that is in the transaction."""
        return cast("Connection", self._pooled)

    @asynccontextmanager
    async def block(self) -> AsyncIterator[Connection]:
        """Give the connection; what is done in a block that raises is undone, what was done before it stays."""
        async with self._pooled.transaction():
            yield self.connection

    async def commit_with(self, settlement: Settlement) -> bool:
        """Record the completion and commit both; False: the lease was lost, and neither is there.

        Raises what the database raises; then ask `EffectStore.is_committed`.
        """
        async with asyncio.timeout(COMMIT_SECONDS):
            kept = await settle_on(self.connection, settlement)
            await (self._transaction.commit() if kept else self._transaction.rollback())
            await self._pool.release(self._pooled)
        return kept

    async def discard(self) -> None:
        """Undo everything. A connection in the middle of something is closed: the database undoes it then."""
        try:
            async with asyncio.timeout(COMMIT_SECONDS):
                await self._transaction.rollback()
                await self._pool.release(self._pooled)
        except Exception:  # noqa: BLE001 - the connection is broken, or busy with what was given up
            self._pooled.terminate()
            await self._pool.release(self._pooled)


class EffectStore:
    """Opens transactions for handlers, and remembers what was done once."""

    def __init__(self, pool: "Pool | None") -> None:
        self._connections = pool

    @property
    def _pool(self) -> Pool:
        if self._connections is None:
            raise NoConnections("ONTHEDOT_TRANSACTION_CONNECTIONS is 0: this worker offers none to handlers")
        return self._connections

    async def begin(self) -> HandlerTransaction:
        """Begin a transaction. Raises `TimeoutError` where every connection for such transactions is in use, and
        `NoConnections`."""
        return await HandlerTransaction.begin(self._pool)

    async def recall(self, claim: Claim, key: str, within: HandlerTransaction | None) -> str | None:
        """Return the result recorded under a key (JSON text); None: nothing yet."""
        source = within.connection if within else self._pool
        result: str | None = await source.fetchval(
            load("recall_effect"), claim.shard, claim.execution_id, key
        )
        return result

    async def record(self, claim: Claim, key: str, result: str, within: HandlerTransaction | None) -> None:
        """Record a result (JSON text). Raises `LeaseLost`."""
        source = within.connection if within else self._pool
        place = (claim.shard, claim.execution_id, claim.lease_epoch)
        if await source.fetchval(load("record_effect"), *place, key, result) is None:
            raise LeaseLost(f"another worker has the execution {claim.execution_id}")

    async def is_committed(self, claim: Claim) -> bool | None:
        """Tell what came of a completion whose commit was not confirmed; None: somebody else has the execution."""
        place = (claim.shard, claim.execution_id, claim.lease_epoch)
        async with asyncio.timeout(COMMIT_SECONDS):
            if await self._pool.fetchval(load("is_still_ours"), *place) is not None:
                return False
            return True if await self._pool.fetchval(load("is_settled"), *place) else None
