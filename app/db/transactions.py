"""Transactions of requests: whatever a request changes, and the answer kept for its repeat, is one transaction."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import cast
from weakref import WeakValueDictionary

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.actors import name_actor
from app.db.errors import is_unavailable
from app.db.pools import Connection
from app.db.stores.answers import WAIT_SECONDS, patiently, recall, remember, write_answer
from app.domain.access import Principal
from app.domain.errors import RequestUnderway
from app.domain.idempotency import IdempotentRequest, Repeated, StoredAnswer

NOT_YET = StoredAnswer(0, b"")
"""What is remembered first; nobody else sees it before the answer has taken its place."""


class Transaction:
    """A request's transaction: begun when something first needs it, in the name of who makes the request.

    Stores and reads take it as `within`. Under an Idempotency-Key the key is the first thing that it writes and the
    answer the last: they are there if and only if the effect is.
    """

    def __init__(
        self, engine: AsyncEngine, stack: AsyncExitStack, *, by: Principal, request: IdempotentRequest | None
    ) -> None:
        self._engine = engine
        self._stack = stack
        self._by = by
        self._request = request
        self._connection: AsyncConnection | None = None
        self._afterwards: list[Callable[[], None]] = []
        self._committed = False
        self.kept_body: bytes | None = None
        """What a repeat reads where the answer's own body must not be kept."""

    async def connection(self) -> AsyncConnection:
        """Return the connection, in the transaction. Raises `Repeated`, `IdempotencyMismatch`, `RequestUnderway`."""
        if self._connection is None:
            self._connection = await patiently(self._begin)
        return self._connection

    async def driver(self) -> Connection:
        """Return the same connection as the statements of the hot path take it. Raises what `connection` does.

        Unlike the pool's it returns jsonb decoded, for SQLAlchemy's sake: select as text what is to be text.
        """
        return await _driver_of(await self.connection())

    def once_committed(self, call: Callable[[], None]) -> None:
        """Have something done after the commit, such as waking a worker: before, there is nothing to be found."""
        self._afterwards.append(call)

    async def commit(self, answer: StoredAnswer) -> None:
        """Keep the answer, also of a request that has changed nothing, and commit. Raises what `connection` does.

        A second call does nothing: who waits for what it has begun commits before.
        """
        if self._committed:
            return
        if self._request is not None:
            kept = answer if self.kept_body is None else _with_body(answer, self.kept_body)
            await write_answer(await self.driver(), self._request, kept)
        if self._connection is not None:
            await self._connection.commit()
        self._committed = True
        for call in self._afterwards:
            call()

    async def _begin(self) -> AsyncConnection:
        async with AsyncExitStack() as stack:
            connection = await stack.enter_async_context(_connected(self._engine))
            await name_actor(connection, self._by.actor)
            if self._request is not None:
                await _remember(await _driver_of(connection), self._request)
            self._stack.push_async_callback(stack.pop_all().aclose)
        return connection


class Transactions:
    """Opens a transaction for a request."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._turns: WeakValueDictionary[bytes, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def open(
        self, by: Principal, request: IdempotentRequest | None = None
    ) -> AsyncIterator[Transaction]:
        """Open a transaction, which is rolled back unless it is committed before the end.

        Raises `Repeated` where the request was carried out before, `IdempotencyMismatch` where its key stands for
        another one, and `RequestUnderway` where the first one takes long.
        """
        async with AsyncExitStack() as stack:
            if request is not None:
                await self._wait_for_turn(stack, request)
                await self._refuse_repeat(request)
            yield Transaction(self._engine, stack, by=by, request=request)

    async def _wait_for_turn(self, stack: AsyncExitStack, request: IdempotentRequest) -> None:
        """Let in one request of a key at a time: who waits here takes no connection from the others."""
        turn = self._turns.setdefault(request.key_hash, asyncio.Lock())
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await stack.enter_async_context(turn)
        except TimeoutError:
            raise RequestUnderway from None

    async def _refuse_repeat(self, request: IdempotentRequest) -> None:
        """Look for an earlier answer before anything is checked: what has changed since must not matter."""
        async with self._engine.connect() as connection:
            answer = await recall(await _driver_of(connection), request)
        if answer is not None:
            raise Repeated(answer)


@asynccontextmanager
async def _connected(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """Open a connection. With one that is lost there is nothing to end: what it has not committed is undone."""
    connection = await engine.connect()
    try:
        yield connection
    finally:
        try:
            await connection.close()
        except Exception as error:
            if not is_unavailable(error):
                raise


async def _remember(connection: Connection, request: IdempotentRequest) -> None:
    """Write the key down, or raise what it says already: another process was faster."""
    while await remember(connection, [(request, NOT_YET)]):
        answer = await recall(connection, request)
        if answer is not None:
            raise Repeated(answer)
        # Else it grew 24 hours old between the two statements.


async def _driver_of(connection: AsyncConnection) -> Connection:
    return cast("Connection", (await connection.get_raw_connection()).driver_connection)


def _with_body(answer: StoredAnswer, body: bytes) -> StoredAnswer:
    return msgspec.structs.replace(answer, body=body)
