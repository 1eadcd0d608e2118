"""Rows about punctuality: what was created ahead of time and is due at its instant."""

import asyncio
import time

from benchmarks.bench import Bench, Figure, Size

BURSTS = ((20_000, 1), (100_000, 5))
"""How many are due at one instant, and in how many seconds all ought to have started."""


async def spread(bench: Bench, _size: Size) -> list[Figure]:
    """A thousand jobs over 20 seconds, each on its own instant, beside bare timers of an event loop."""
    await bench.forget()
    first = time.time() + 4
    jobs = [
        {"task_id": "noop", "schedule": {"type": "ONCE", "scheduled_time": first + 0.02 * i}}
        for i in range(1000)
    ]
    await bench.post("/jobs/batch", {"jobs": jobs})
    await asyncio.sleep(max(0.0, first - time.time()))
    bare = await _bare_timers(1000, over_seconds=20.0)
    await bench.settled()
    p50, p99, most = await bench.quantiles("lateness_ms", 0.5, 0.99, 1.0)
    early = await bench.database.fetchval(
        "SELECT count(*) FROM onthedot.execution_history WHERE started_at < due_at"
    )
    return [
        Figure("1,000 over 20 s", "p50 late", p50, "ms", "≤ 1"),
        Figure("1,000 over 20 s", "p99 late", p99, "ms", f"≤ {bare + 1:.1f}"),
        Figure("1,000 over 20 s", "most late", most, "ms"),
        Figure("1,000 over 20 s", "p99 late of bare timers", bare, "ms"),
        Figure("1,000 over 20 s", "early", early, "", "0"),
    ]


async def _bare_timers(number: int, *, over_seconds: float) -> float:
    loop, late = asyncio.get_running_loop(), []
    begins = loop.time() + 0.05
    for i in range(number):
        due = begins + over_seconds * i / number
        loop.call_at(due, lambda due=due: late.append(1000 * (loop.time() - due)))
    await asyncio.sleep(over_seconds + 0.2)
    return sorted(late)[int(number * 0.99)]


async def burst(bench: Bench, _size: Size) -> list[Figure]:
    """Twenty thousand jobs are due at one instant, and a hundred thousand at another."""
    figures = []
    for number, most_seconds in BURSTS:
        await bench.forget()
        instant = bench.ahead(number)
        await bench.enqueue("noop", number, type="ONCE", scheduled_time=instant)
        await bench.until(instant)
        await bench.settled()
        p50, most = await bench.quantiles("lateness_ms", 0.5, 1.0)
        figures += [
            Figure(f"{number:,} at one instant", "p50 late", p50, "ms"),
            Figure(f"{number:,} at one instant", "all started", most / 1000, "s", f"≤ {most_seconds}"),
        ]
    return figures
