"""The one loop: when it ticks, what wakes it, how it gets over failures, how it stops. In virtual time."""

import asyncio
import logging
import selectors
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterable
from itertools import pairwise
from typing import Any

import pytest

import app.loop as loop_module
from app.loop import Loop

LONG = 3600.0


class _Leaping(selectors.DefaultSelector):
    """Does not wait for a moment to come, but goes there."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.now += max(0.0, timeout or 0.0)
        return super().select(0)


def in_virtual_time(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a coroutine function in an event loop in which no wait takes any time."""

    def virtual_loop() -> asyncio.AbstractEventLoop:
        selector = _Leaping()
        loop = asyncio.SelectorEventLoop(selector)
        loop.time = lambda: selector.now  # type: ignore[method-assign]
        return loop

    with asyncio.Runner(loop_factory=virtual_loop) as runner:
        runner.run(main())


WORK, IDLE, BROKEN = "work", "idle", "broken"


class Ticks:
    """A tick that finds what it is told to find, notes when, and tells when it has found all; then it idles."""

    def __init__(self, *results: str) -> None:
        self._results = list(results)
        self.times: list[float] = []
        self.all_done = asyncio.Event()

    async def __call__(self) -> bool:
        self.times.append(asyncio.get_running_loop().time())
        result = self._results.pop(0) if self._results else IDLE
        if not self._results:
            self.all_done.set()
        if result == BROKEN:
            raise OSError("no database")
        return result == WORK

    @property
    def waits(self) -> list[float]:
        """Return the seconds between ticks."""
        return [later - earlier for earlier, later in pairwise(self.times)]


def within_jitter(waits: Iterable[float], expected: Iterable[float]) -> bool:
    """Tell whether each wait is what is expected, give or take 10 %."""
    pairs = zip(waits, expected, strict=True)
    return all(0.89 * seconds <= wait <= 1.11 * seconds for wait, seconds in pairs)


def test_goes_on_at_once_while_there_is_work_and_waits_when_there_is_none() -> None:
    async def main() -> None:
        ticks = Ticks(WORK, WORK, IDLE, IDLE, WORK, IDLE, IDLE)
        loop = Loop("test", ticks, interval_seconds=5)
        loop.start()
        await ticks.all_done.wait()
        await loop.stop()
        assert within_jitter(ticks.waits, [0, 0, 5, 5, 0, 5])

    in_virtual_time(main)


@pytest.mark.parametrize("phase_seconds", [0.0, 0.1, 0.45, 0.899])
def test_loops_of_a_process_turn_together_on_its_beat(
    monkeypatch: pytest.MonkeyPatch, phase_seconds: float
) -> None:
    monkeypatch.setattr(loop_module, "_phase_seconds", phase_seconds)

    async def main() -> None:
        every = {seconds: Ticks(*[IDLE] * 20) for seconds in (0.9, 1.0, 1.8)}
        loops = [Loop("test", ticks, interval_seconds=seconds) for seconds, ticks in every.items()]
        for loop in loops:
            loop.start()
            await asyncio.sleep(0.2)
        await every[1.8].all_done.wait()
        for loop in loops:
            await loop.stop()
        for seconds, ticks in every.items():
            assert 0 < ticks.waits[0] <= 1.1 * seconds
            assert ticks.waits[1:19] == pytest.approx([round(seconds / 0.9) * 0.9] * 18)
        begun = {
            round((at - phase_seconds) / 0.9, 6) % 1 for ticks in every.values() for at in ticks.times[1:20]
        }
        assert begun <= {0.0, 0.000001, 0.999999}

    in_virtual_time(main)


def test_processes_that_start_together_keep_apart() -> None:
    phases = {
        subprocess.run(
            [sys.executable, "-c", "from app import loop; print(loop._phase_seconds)"],
            capture_output=True,
            check=True,
        ).stdout
        for _ in range(3)
    }
    assert len(phases) == 3


def test_loops_that_turn_more_often_than_the_beat_wait_give_or_take() -> None:
    async def main() -> None:
        ticks = Ticks(*[IDLE] * 20)
        loop = Loop("test", ticks, interval_seconds=0.5)
        loop.start()
        await ticks.all_done.wait()
        await loop.stop()
        assert len(set(ticks.waits)) > 1
        assert within_jitter(ticks.waits, [0.5] * 19)

    in_virtual_time(main)


def test_a_wake_ends_the_wait_and_one_during_a_tick_is_not_forgotten() -> None:
    async def main() -> None:
        woken = 0

        async def tick() -> bool:
            nonlocal woken
            woken += 1
            if woken == 2:
                loop.wake()  # for whoever called it, the work of this tick had been done already
            return False

        loop = Loop("test", tick, interval_seconds=LONG)
        loop.start()
        await settled()
        assert woken == 1
        loop.wake()
        await settled()
        assert woken == 3
        assert asyncio.get_running_loop().time() < 1
        await loop.stop()

    in_virtual_time(main)


def test_failures_are_logged_and_wait_longer_each_time_up_to_a_bound(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        ticks = Ticks(*[BROKEN] * 7, IDLE, BROKEN, IDLE)
        loop = Loop("reaper", ticks, interval_seconds=0.5, max_backoff_seconds=5)
        loop.start()
        await ticks.all_done.wait()
        await loop.stop()
        assert within_jitter(ticks.waits, [0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 0.5, 0.2])

    with caplog.at_level(logging.ERROR):
        in_virtual_time(main)

    assert len(caplog.records) == 8
    assert {(vars(record)["event"], vars(record)["loop"]) for record in caplog.records} == {
        ("tick_failed", "reaper")
    }
    assert all("no database" in str(record.exc_info) for record in caplog.records)


def test_wakes_do_not_make_a_broken_tick_spin() -> None:
    async def main() -> None:
        ticks = Ticks(BROKEN)
        loop = Loop("test", ticks, interval_seconds=LONG)
        loop.start()
        for _ in range(20):
            loop.wake()
            await asyncio.sleep(0)
        assert len(ticks.times) == 1
        await loop.stop()
        assert asyncio.get_running_loop().time() < 0.1

    in_virtual_time(main)


def test_many_failures_overflow_nothing() -> None:
    async def main() -> None:
        ticks = Ticks(*[BROKEN] * 2000, IDLE)
        loop = Loop("test", ticks, interval_seconds=1)
        loop.start()
        await ticks.all_done.wait()
        await loop.stop()
        assert max(ticks.waits) <= 11

    in_virtual_time(main)


def test_stop_lets_a_running_tick_finish_and_may_be_called_again() -> None:
    async def main() -> None:
        begun, go_on, finished = asyncio.Event(), asyncio.Event(), []

        async def tick() -> bool:
            begun.set()
            await go_on.wait()
            finished.append(True)
            return True

        loop = Loop("test", tick, interval_seconds=LONG)
        loop.start()
        await begun.wait()
        stops = [asyncio.create_task(loop.stop()) for _ in range(2)]
        await settled()
        assert not any(stop.done() for stop in stops)
        go_on.set()
        await asyncio.gather(*stops)
        await loop.stop()
        assert finished == [True]

    in_virtual_time(main)


def test_start_and_stop_come_in_any_order() -> None:
    async def main() -> None:
        ticks = Ticks(IDLE)
        started_twice = Loop("test", ticks, interval_seconds=LONG)
        started_twice.start()
        started_twice.start()
        await settled()
        await started_twice.stop()
        started_twice.start()
        stopped_first = Loop("test", ticks, interval_seconds=LONG)
        await stopped_first.stop()
        stopped_first.start()
        await settled()
        assert len(ticks.times) == 1

    in_virtual_time(main)


async def settled() -> None:
    """Let everything happen that needs no time."""
    for _ in range(20):
        await asyncio.sleep(0)
