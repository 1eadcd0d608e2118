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
from app.domain.recordable import RESULT_LIMIT_BYTES, recordable

T = TypeVar("T")

MAX_KEY = 200


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
        known = await self._recall(key)
        if known is None:
            result = action()
            known = await self._record(key, await result if inspect.isawaitable(result) else result)
        return msgspec.json.decode(known)

    def once_in_thread(self, key: str, action: Callable[[], Any]) -> Any:  # noqa: ANN401
        """Do the same from the thread of a `def` handler; `action` runs in that thread."""
        known = self._wait(self._recall(key))
        if known is None:
            known = self._wait(self._record(key, action()))
        return msgspec.json.decode(known)

    async def _recall(self, key: object) -> str | None:
        if not isinstance(key, str) or not 0 < len(key) <= MAX_KEY or "\0" in key:
            raise ValueError(f"ctx.once takes a key of 1 to {MAX_KEY} characters, not {key!r:.100}")
        return await self._store.recall(self._claim, key, self.transaction)

    async def _record(self, key: str, result: object) -> str:
        recorded = recordable(result)
        if recorded.truncated:
            raise ValueError(
                f"the result of ctx.once({key!r}) has more than {RESULT_LIMIT_BYTES} bytes as JSON"
            )
        await self._store.record(self._claim, key, recorded.json_text, self.transaction)
        return recorded.json_text

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
