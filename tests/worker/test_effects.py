"""Effects in onthedot's own database: there with the completion or not at all, and done once."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest

from app.domain.statuses import Status
from app.tasks import Context, Handler
from tests.polling import eventually
from tests.worker.conftest import Bench

Register = dict[str, Handler]
SHOP = """
CREATE TABLE shop (item text PRIMARY KEY DEFERRABLE INITIALLY DEFERRED);
CREATE FUNCTION drop_the_line() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT count(*) FROM onthedot.attempts) = 0 THEN
        PERFORM pg_terminate_backend(pg_backend_pid());
    END IF;
    RETURN NULL;
END $$;
"""
DROPPING = """
CREATE CONSTRAINT TRIGGER dropping AFTER INSERT ON shop DEFERRABLE INITIALLY DEFERRED
   FOR EACH ROW EXECUTE FUNCTION drop_the_line()
"""
SELL = "INSERT INTO shop (item) VALUES ($1)"


@pytest.fixture
async def shop(bench: Bench) -> Callable[[], Any]:
    """Make a table for effects; return what reads it."""
    await bench.pool.execute(SHOP)

    async def sold() -> list[str]:
        return [row["item"] for row in await bench.pool.fetch("SELECT item FROM shop ORDER BY item")]

    return sold


async def run(bench: Bench, name: str, **columns: object) -> UUID:
    """Start a worker and a job of the function `name`."""
    await bench.start_worker()
    return await bench.job(await bench.task(f"python:{name}", retry_delay_seconds=0.01, **columns))


async def test_effect_and_completion_are_there_together(
    bench: Bench, register: Register, shop: Callable[[], Any]
) -> None:
    seen_before: list[str] = []

    async def sell(ctx: Context) -> str:
        async with ctx.transaction() as connection:
            await connection.execute(SELL, "apple")
        async with ctx.transaction() as connection:
            await connection.execute(SELL, "pear")
        seen_before.extend(await shop())
        return "sold"

    register["sell"] = sell
    execution = await bench.ended(await run(bench, "sell"))

    assert (execution.status, execution.result) == (Status.COMPLETED, "sold")
    assert seen_before == []
    assert await shop() == ["apple", "pear"]


def sell_in_a_thread(ctx: Context) -> int:
    """Sell as a `def` handler does."""
    with ctx.transaction() as connection:
        connection.execute(SELL, "apple")
        assert connection.fetchval("SELECT count(*) FROM shop") == 1
        assert connection.fetchrow("SELECT item FROM shop")["item"] == "apple"
        return len(connection.fetch("SELECT item FROM shop"))


async def test_plain_functions_have_transactions_too(
    bench: Bench, register: Register, shop: Callable[[], Any]
) -> None:
    register["sell"] = sell_in_a_thread

    execution = await bench.ended(await run(bench, "sell"))

    assert (execution.status, execution.result) == (Status.COMPLETED, 1)
    assert await shop() == ["apple"]


async def test_who_fails_after_it_has_left_no_effect(
    bench: Bench, register: Register, shop: Callable[[], Any]
) -> None:
    async def fail(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await connection.execute(SELL, "apple")
        raise ValueError("the till is stuck")

    register["fail"] = fail
    execution = await bench.ended(await run(bench, "fail", max_retries=1))

    assert (execution.status, execution.attempt_number) == (Status.FAILED, 2)
    assert await shop() == []


async def test_a_block_that_raises_is_undone_alone(
    bench: Bench, register: Register, shop: Callable[[], Any]
) -> None:
    async def sell(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await connection.execute(SELL, "apple")
        with suppress(ZeroDivisionError):
            async with ctx.transaction() as connection:
                await connection.execute(SELL, "pear")
                1 / 0  # noqa: B018 - raises

    register["sell"] = sell
    execution = await bench.ended(await run(bench, "sell"))

    assert execution.status is Status.COMPLETED
    assert await shop() == ["apple"]


async def test_who_lost_the_lease_has_no_effect(
    bench: Bench, register: Register, shop: Callable[[], Any]
) -> None:
    starts: list[int] = []

    async def sell(ctx: Context) -> None:
        starts.append(ctx.attempt_number)
        async with ctx.transaction() as connection:
            await connection.execute(SELL, f"apple of attempt {ctx.attempt_number}")
        if len(starts) == 1:  # somebody else takes the execution over, as after a freeze
            await bench.pool.execute(
                "UPDATE onthedot.executions SET lease_epoch = lease_epoch + 1, status = 'RETRYING', worker_id = NULL,"
                " lease_expires_at = NULL, claimed_at = NULL WHERE execution_id = $1",
                ctx.execution_id,
            )

    register["sell"] = sell
    execution = await bench.ended(await run(bench, "sell"))

    assert (execution.status, execution.attempt_number) == (Status.COMPLETED, 2)
    assert await shop() == ["apple of attempt 2"]


async def test_what_cannot_be_committed_is_not_completed(
    bench: Bench, register: Register, shop: Callable[[], Any]
) -> None:
    async def sell_twice(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await connection.execute(SELL, "apple")
            await connection.execute(SELL, "apple")  # refused at the commit

    register["sell_twice"] = sell_twice
    execution = await bench.ended(await run(bench, "sell_twice", max_retries=0))

    assert execution.status is Status.FAILED
    assert execution.error is not None
    assert execution.error.type == "UniqueViolationError"
    assert await shop() == []


async def test_a_line_that_breaks_at_the_commit_costs_an_attempt_not_the_effect(
    bench: Bench, register: Register, shop: Callable[[], Any]
) -> None:
    await bench.pool.execute(DROPPING)

    async def sell(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await connection.execute(SELL, "apple")

    register["sell"] = sell
    execution = await bench.ended(await run(bench, "sell"))

    assert (execution.status, execution.attempt_number) == (Status.COMPLETED, 2)
    assert await shop() == ["apple"]


@pytest.mark.parametrize("within", [False, True], ids=["by itself", "in a transaction"])
async def test_what_is_done_once_is_not_done_by_the_next_attempt(
    bench: Bench, register: Register, *, within: bool
) -> None:
    charged: list[int] = []

    async def charge() -> dict[str, int]:
        charged.append(1)
        return {"receipt": len(charged)}

    async def pay(ctx: Context) -> Any:
        if within:
            async with ctx.transaction():
                receipt = await ctx.once("charge", charge)
        else:
            receipt = await ctx.once("charge", charge)
        if ctx.attempt_number == 1:
            raise ConnectionError("the mail server is away")
        return receipt

    register["pay"] = pay
    execution = await bench.ended(await run(bench, "pay"))

    assert execution.status is Status.COMPLETED
    # The record in a transaction went with it when the attempt failed, as an effect in it would have.
    assert execution.result == {"receipt": 2 if within else 1}
    assert len(charged) == (2 if within else 1)


async def test_plain_functions_do_things_once_too(bench: Bench, register: Register) -> None:
    threads: list[bool] = []

    def charge() -> int:
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        threads.append(True)
        return 7

    def pay(ctx: Context) -> int:
        receipts = [ctx.once("charge", charge), ctx.once("charge", charge)]
        if ctx.attempt_number == 1:
            raise ConnectionError
        return sum(receipts)

    register["pay"] = pay
    execution = await bench.ended(await run(bench, "pay"))

    assert (execution.result, threads) == (14, [True])


@pytest.mark.parametrize("key", ["", "x" * 201, "a\0b", 7])
async def test_a_key_that_cannot_be_kept_is_refused_before_anything_is_done(
    bench: Bench, register: Register, key: Any
) -> None:
    done: list[bool] = []

    async def pay(ctx: Context) -> None:
        await ctx.once(key, lambda: done.append(True))

    register["pay"] = pay
    execution = await bench.ended(await run(bench, "pay", max_retries=0))

    assert execution.error is not None
    assert execution.error.type == "ValueError"
    assert done == []


async def test_who_lost_the_lease_records_nothing(bench: Bench, register: Register) -> None:
    errors: list[str] = []

    async def pay(ctx: Context) -> None:
        if ctx.attempt_number == 1:
            await bench.pool.execute(
                "UPDATE onthedot.executions SET lease_epoch = lease_epoch + 1, status = 'RETRYING', worker_id = NULL,"
                " lease_expires_at = NULL, claimed_at = NULL WHERE execution_id = $1",
                ctx.execution_id,
            )
        try:
            await ctx.once("charge", lambda: ctx.attempt_number)
        except Exception as error:
            errors.append(type(error).__name__)
            raise

    register["pay"] = pay
    await bench.ended(await run(bench, "pay"))

    assert errors == ["LeaseLost"]
    assert await bench.pool.fetch("SELECT result::text FROM onthedot.effects") == [("2",)]


async def test_no_more_transactions_than_there_are_connections(
    bench: Bench, register: Register, shop: Callable[[], Any]
) -> None:
    async def sell(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await connection.execute(SELL, str(ctx.execution_id))

    register["sell"] = sell
    await bench.start_worker()
    task = await bench.task("python:sell")
    for execution_id in [await bench.job(task) for _ in range(30)]:
        assert (await bench.ended(execution_id)).status is Status.COMPLETED

    assert len(await shop()) == 30
    assert await eventually(lambda: _none_in_transaction(bench))


async def _none_in_transaction(bench: Bench) -> bool:
    open_ones = await bench.pool.fetchval(
        "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"
        " AND datname = current_database()"
    )
    return bool(open_ones == 0)
