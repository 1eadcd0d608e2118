"""What one attempt does in the database by `ctx.transaction` and `ctx.once`."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import msgspec

from app.db.pools import Connection
from app.db.stores.effects import EffectStore, HandlerTransaction
from app.domain.claims import Claim
from app.domain.effects import check_key, effect_json

T = TypeVar("T")


class AttemptEffects:
    """Its transaction, which is begun when the handler first asks for it, and its effects that are done once."""

    __slots__ = ("_claim", "_loop", "_store", "transaction")

    def __init__(self, store: EffectStore, claim: Claim) -> None:
        self._store = store
        self._claim = claim
        self._loop = asyncio.get_running_loop()
        self.transaction: HandlerTransaction | None = None

    @asynccontextmanager
    async def block(self) -> AsyncIterator[Connection]:
        """Give the connection of the attempt's transaction; a block that raises is undone by itself."""
        if self.transaction is None:
            self.transaction = await self._store.begin()
        async with self.transaction.block() as connection:
            yield connection

    @contextmanager
    def block_in_thread(self) -> Iterator["ThreadConnection"]:
        """Do the same from the thread of a `def` handler."""
        block = self.block()
        connection = self._wait(block.__aenter__())
        try:
            yield ThreadConnection(connection, self._wait)
        except BaseException as error:
            self._wait(block.__aexit__(type(error), error, error.__traceback__))
            raise
        self._wait(block.__aexit__(None, None, None))

    async def once(self, key: str, action: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever it was
        """Do something unless an attempt of this execution has done it, and return what it came to."""
        known = await self.recall(key)
        if known is None:
            result = action()
            known = await self._record(key, await result if inspect.isawaitable(result) else result)
        return msgspec.json.decode(known)

    def once_in_thread(self, key: str, action: Callable[[], Any]) -> Any:  # noqa: ANN401
        """Do the same from the thread of a `def` handler; `action` runs in that thread."""
        known = self._wait(self.recall(key))
        if known is None:
            known = self._wait(self._record(key, action()))
        return msgspec.json.decode(known)

    async def recall(self, key: str) -> str | None:
        """Return what an effect came to (JSON text), None where it is not done. Raises `ValueError` for a bad key."""
        check_key(key)
        return await self._store.recall(self._claim, key, self.transaction)

    async def remember(self, key: str, result: str) -> None:
        """Note what an effect came to (JSON text). Raises `LeaseLost`."""
        await self._store.record(self._claim, key, result, self.transaction)

    async def _record(self, key: str, result: object) -> str:
        text = effect_json(key, result)
        await self.remember(key, text)
        return text

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


class ThreadConnection:
    """The connection of a transaction as a `def` handler uses it: asyncpg's methods, without `await`."""

    def __init__(self, connection: Connection, wait: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        self._connection = connection
        self._wait = wait

    def execute(self, query: str, *arguments: object) -> str:
        """Run a statement; return its status, such as `UPDATE 1`."""
        return str(self._wait(self._connection.execute(query, *arguments)))

    def fetch(self, query: str, *arguments: object) -> list[Any]:
        """Run a statement; return its rows."""
        return list(self._wait(self._connection.fetch(query, *arguments)))

    def fetchrow(self, query: str, *arguments: object) -> Any:  # noqa: ANN401 - a row
        """Run a statement; return its first row, None where there is none."""
        return self._wait(self._connection.fetchrow(query, *arguments))

    def fetchval(self, query: str, *arguments: object) -> Any:  # noqa: ANN401 - a value
        """Run a statement; return the first value of its first row, None where there is none."""
        return self._wait(self._connection.fetchval(query, *arguments))
