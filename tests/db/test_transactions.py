"""Transactions of requests: begun when needed, committed with their answer, and one at a time under one key."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.acting import acting, acting_in, once_committed, reading
from app.db.pools import Pool
from app.db.stores.queues import QueueStore
from app.db.transactions import Transaction, Transactions
from app.domain.access import Principal, Role
from app.domain.errors import IdempotencyMismatch
from app.domain.idempotency import IdempotentRequest, Repeated, StoredAnswer, idempotent_request
from app.domain.queues import QueueRequest
from tests.polling import eventually

ADA = Principal("ada", Role.ADMIN)
WAITING = """
    SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"""
CREATED = StoredAnswer(201, b'{"queue":"night"}', {"ETag": '"1"'})


def request(body: bytes = b"{}", *, key: str = "k") -> IdempotentRequest:
    return idempotent_request(key, user_id="ada", method="POST", path="/queues", query="", body=body)


async def create(engine: AsyncEngine, within: Transaction, queue: str = "night") -> None:
    await QueueStore(engine).create(QueueRequest(queue=queue), by=ADA, within=within)


async def queues(pool: Pool) -> set[str]:
    found = await pool.fetch("SELECT queue FROM onthedot.queues WHERE queue LIKE '%night%'")
    return {row["queue"] for row in found}


async def keys(pool: Pool) -> int:
    found: int = await pool.fetchval("SELECT count(*) FROM onthedot.idempotency_keys")
    return found


async def test_it_takes_a_connection_when_it_is_needed_and_gives_it_back(engine: AsyncEngine) -> None:
    async with Transactions(engine).open(ADA) as transaction:
        assert in_use(engine) == 0
        await create(engine, transaction)
        assert in_use(engine) == 1
        await transaction.commit(CREATED)
    assert in_use(engine) == 0


async def test_the_answer_is_kept_also_where_nothing_was_changed(pool: Pool, engine: AsyncEngine) -> None:
    async with Transactions(engine).open(ADA) as transaction:
        await transaction.commit(CREATED)
    assert await keys(pool) == 0

    async with Transactions(engine).open(ADA, request()) as transaction:
        await transaction.commit(CREATED)
    with pytest.raises(Repeated) as repeated:
        async with Transactions(engine).open(ADA, request()):
            raise AssertionError
    assert repeated.value.answer == CREATED


async def test_all_that_works_within_it_sees_and_is_one_transaction(pool: Pool, engine: AsyncEngine) -> None:
    here = "SELECT pg_current_xact_id()::text || ' ' || current_setting('onthedot.actor')"
    async with Transactions(engine).open(ADA) as within:
        await create(engine, within)
        async with acting(engine, ADA, within) as one, reading(engine, within) as two:
            found = [await one.exec_driver_sql(here), await two.exec_driver_sql(here)]
        async with acting_in(pool, ADA.actor, within) as three:
            seen = await three.fetchval("SELECT count(*) FROM onthedot.queues WHERE queue = 'night'")
            assert {result.scalar_one() for result in found} == {await three.fetchval(here)}
        assert seen == 1
        assert await queues(pool) == set()
        await within.commit(CREATED)
    assert await queues(pool) == {"night"}


async def test_without_a_commit_nothing_has_happened(pool: Pool, engine: AsyncEngine) -> None:
    transactions = Transactions(engine)

    async def serve(*, fail: bool) -> None:
        async with transactions.open(ADA, request()) as transaction:
            await create(engine, transaction)
            if fail:
                raise ZeroDivisionError

    await serve(fail=False)
    with pytest.raises(ZeroDivisionError):
        await serve(fail=True)

    assert (await queues(pool), await keys(pool), in_use(engine)) == (set(), 0, 0)


async def test_what_waits_for_the_commit_is_done_after_it_or_never(pool: Pool, engine: AsyncEngine) -> None:
    done: list[str] = []
    async with Transactions(engine).open(ADA) as transaction:
        once_committed(transaction, lambda: done.append("never"))
    async with Transactions(engine).open(ADA) as transaction:
        once_committed(transaction, lambda: done.append("afterwards"))
        await create(engine, transaction)
        assert done == []
        await transaction.commit(CREATED)
    once_committed(None, lambda: done.append("at once"))

    assert done == ["afterwards", "at once"]
    assert await queues(pool) == {"night"}


async def test_a_repeat_is_told_the_answer_and_another_request_is_refused(engine: AsyncEngine) -> None:
    transactions = Transactions(engine)
    async with transactions.open(ADA, request()) as transaction:
        await create(engine, transaction)
        await transaction.commit(CREATED)

    with pytest.raises(Repeated) as repeated:
        async with transactions.open(ADA, request()):
            raise AssertionError
    assert repeated.value.answer == CREATED
    with pytest.raises(IdempotencyMismatch):
        async with transactions.open(ADA, request(b"[]")):
            raise AssertionError
    async with transactions.open(ADA, request(key="other")) as transaction:
        await create(engine, transaction, "another-night")
        await transaction.commit(CREATED)


async def test_who_comes_second_waits_in_the_database_and_is_told_the_answer(
    pool: Pool, engine: AsyncEngine
) -> None:
    async with second_waits(pool, engine, request()) as (first, second):
        await first.commit(CREATED)
        with pytest.raises(Repeated) as repeated:
            await second
    assert repeated.value.answer == CREATED
    assert await queues(pool) == {"night"}


async def test_who_comes_second_with_another_request_is_refused(pool: Pool, engine: AsyncEngine) -> None:
    async with second_waits(pool, engine, request(b"[]")) as (first, second):
        await first.commit(CREATED)
        with pytest.raises(IdempotencyMismatch):
            await second


async def test_who_comes_second_goes_on_where_the_first_one_failed(pool: Pool, engine: AsyncEngine) -> None:
    async with second_waits(pool, engine, request()) as (first, second):
        await (await first.connection()).rollback()
        await second
    assert (await queues(pool), await keys(pool)) == ({"second-night"}, 1)


@asynccontextmanager
async def second_waits(
    pool: Pool, engine: AsyncEngine, other: IdempotentRequest
) -> AsyncIterator[tuple[Transaction, "asyncio.Task[None]"]]:
    """Yield a transaction that has done its work, and another process's, which waits for the key."""

    async def serve() -> None:
        async with Transactions(engine).open(ADA, other) as transaction:
            await create(engine, transaction, "second-night")
            await transaction.commit(CREATED)

    async def waits() -> bool:
        return bool(await pool.fetchval(WAITING))

    async with Transactions(engine).open(ADA, request()) as first:
        await create(engine, first)
        second = asyncio.create_task(serve())
        await eventually(waits)
        yield first, second


def in_use(engine: AsyncEngine) -> int:
    """Return how many connections are taken."""
    found: int = engine.pool.checkedout()  # type: ignore[attr-defined]  # a queue pool has it
    return found
