"""Answers kept under Idempotency-Keys, in the transactions of their effects: a key is there if its effect is."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

import asyncpg
import msgspec

from app.db.pools import Connection, Pool
from app.db.queries import load
from app.domain.errors import IdempotencyMismatch, RequestUnderway
from app.domain.idempotency import IdempotentRequest, StoredAnswer

WAIT_SECONDS = 5.0
"""How long a repeat waits for the answer to a request that is still being served."""
LOCK_WAIT_SECONDS = 0.05
"""How long of that at a time in the database, with a connection that others need."""
PAUSE_SECONDS = 0.1

T = TypeVar("T")


async def patiently(attempt: Callable[[], Awaitable[T]]) -> T:
    """Make an attempt again and again while another request holds its key; in between it shall hold no connection.

    Raises `RequestUnderway` where that takes longer than `WAIT_SECONDS`.
    """
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            return await attempt()
        except RequestUnderway:
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(PAUSE_SECONDS)


async def remember(
    connection: Connection, kept: Iterable[tuple[IdempotentRequest, StoredAnswer]]
) -> set[bytes]:
    """Write down requests and answers, in the order of their keys (one lock order).

    Return the keys that were there already. A key that another transaction holds is waited for, so that its effect
    is either done or not. Raises `RequestUnderway` where that takes longer than a moment: see `patiently`.
    """
    rows = sorted(
        (request.key_hash, request.request_hash, answer.status_code, _json(answer.headers), answer.body)
        for request, answer in kept
    )
    if not rows:
        return set()
    wait = f"{LOCK_WAIT_SECONDS * 1000:.0f}ms"
    try:
        written = await connection.fetchval(load("remember_keys"), *map(list, zip(*rows, strict=True)), wait)
    except asyncpg.LockNotAvailableError:
        raise RequestUnderway from None
    return {row[0] for row in rows}.difference(written)


async def recall(source: "Connection | Pool", request: IdempotentRequest) -> StoredAnswer | None:
    """Return the answer kept under a request's key. Raises `IdempotencyMismatch` where it is another request's."""
    row = await source.fetchrow(load("recall_keys"), [request.key_hash])
    if row is None:
        return None
    if row["request_hash"] != request.request_hash:
        raise IdempotencyMismatch(
            "this Idempotency-Key was used for another request; a key stands for one method, address and body"
        )
    return StoredAnswer(row["status_code"], row["answer"], msgspec.json.decode(row["headers"]))


async def write_answer(connection: Connection, request: IdempotentRequest, answer: StoredAnswer) -> None:
    """Write down the answer to a request that this transaction has remembered."""
    await connection.execute(
        load("answer_key"), request.key_hash, answer.status_code, _json(answer.headers), answer.body
    )


async def forget(connection: Connection, requests: Sequence[IdempotentRequest]) -> None:
    """Take back requests whose effect did not come about."""
    await connection.execute(load("forget_keys"), [request.key_hash for request in requests])


def _json(headers: dict[str, str]) -> str:
    return msgspec.json.encode(headers).decode()
