"""Many instants on one timer."""

import asyncio
import time
from dataclasses import dataclass

from app.worker.alarms import SWEEP_FROM, Alarms
from app.worker.eager import start_at_once


@dataclass
class Item:
    """Something with a moment."""

    number: int
    is_over: bool = False


async def test_what_is_over_does_not_lie_there_until_its_moment() -> None:
    alarms: Alarms[Item] = Alarms(lambda _: None, is_over=lambda item: item.is_over)
    in_an_hour = time.monotonic() + 3600
    lasting = [Item(number) for number in range(100)]
    for item in lasting:
        alarms.set(in_an_hour, item)

    for number in range(100_000):
        alarms.set(in_an_hour, Item(number, is_over=True))

    assert len(alarms) <= SWEEP_FROM
    assert {item.number for item in alarms.clear() if not item.is_over} == set(range(100))


async def test_what_is_not_over_rings_in_its_order_after_a_sweep() -> None:
    rung: list[int] = []
    done = asyncio.Event()

    def ring(items: list[Item]) -> None:
        rung.extend(item.number for item in items if not item.is_over)
        if len(rung) == 2 * SWEEP_FROM:
            done.set()

    alarms: Alarms[Item] = Alarms(ring, is_over=lambda item: item.is_over)
    soon = time.monotonic() + 0.05
    for number in range(4 * SWEEP_FROM):
        alarms.set(soon + number / 1e6, Item(number, is_over=number % 2 == 1))
    async with asyncio.timeout(10):
        await done.wait()

    assert rung == list(range(0, 4 * SWEEP_FROM, 2))


async def test_work_that_never_waits_is_done_at_once_or_in_the_next_turn() -> None:
    async def answer() -> int:
        return 42

    task = start_at_once(answer())
    await asyncio.sleep(0)

    assert task.done()
    assert task.result() == 42
