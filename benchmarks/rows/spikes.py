"""Rows about ten times as much as is usual: a hundred thousand a second."""

import math

from benchmarks.bench import Bench, Figure, Size, client
from benchmarks.load import Load, batch

PER_SECOND = 100_000
CRITICAL_EACH = 1_000
"""One of so many is critical: a hundred a second."""
WORTH_OF_A_SECOND = 25_000
"""A million that is due within ten seconds ought to be done after forty."""
TOGETHER = 1_000


async def spike(bench: Bench, size: Size) -> list[Figure]:
    """So many are due, a hundred thousand a second, and a few of them are critical."""
    await bench.forget()
    first = bench.ahead(size.spike)
    await bench.create(_job(i, first) for i in range(size.spike))
    await bench.until(first)
    await bench.settled()
    [done] = await bench.quantiles(f"extract(epoch FROM completed_at)::float8 - {first}", 1.0)
    [p99] = await bench.quantiles("lateness_ms", 0.99, where="queue = 'critical'")
    row = f"spike of {size.spike:,}"
    return [
        Figure(row, "all completed", done, "s", f"≤ {size.spike / WORTH_OF_A_SECOND:g}"),
        Figure(row, "p99 late of the critical, 100/s", p99, "ms", "≤ 250"),
    ]


def _job(number: int, first: float) -> dict[str, object]:
    schedule = {"type": "ONCE", "scheduled_time": first + number / PER_SECOND}
    critical = {"queue": "critical", "priority": 0} if number % CRITICAL_EACH == 0 else {}
    return {"task_id": "noop", "schedule": schedule} | critical


async def flood(bench: Bench, size: Size) -> list[Figure]:
    """As many come in over REST at that rate, over as many connections as it takes."""
    await bench.forget()
    body, row = batch(TOGETHER), f"flood of {size.spike:,}"
    requests = math.ceil(size.spike / TOGETHER)
    async with client(bench.house, connections=0) as session:
        load = Load(session)
        per_second = PER_SECOND // TOGETHER
        await load.offer("/jobs/batch", lambda _: body, per_second=per_second, seconds=requests / per_second)
    await bench.settled()
    stored = await bench.database.fetchval("SELECT count(*) FROM onthedot.execution_history")
    return [
        Figure(row, f"requests of {TOGETHER:,} jobs", requests, ""),
        Figure(row, "acknowledged", load.acknowledged, "jobs"),
        *load.refusals(row),
        Figure(row, "acknowledged, not completed", await load.lost(bench.database), "jobs", "0"),
        Figure(row, "not acknowledged, yet completed", stored - load.acknowledged, "jobs"),
        Figure(row, "slowest answer", load.slowest_seconds, "s", "≤ 10"),
    ]
