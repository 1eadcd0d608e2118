"""Rows about jobs that come in over REST and run at once."""

import asyncio
import time
from collections.abc import Callable, Sequence
from itertools import count
from statistics import mean

from benchmarks.bench import Bench, Figure, Size
from benchmarks.load import Load, batch

HUNDRED = batch(100)
ONE = b'{"task_id": "noop", "schedule": {"type": "IMMEDIATE"}}'
MOST_MS = 1_000
SAMPLES = 15


async def sustained(bench: Bench, size: Size) -> list[Figure]:
    """Ten thousand jobs a second come in by requests of a hundred, for some seconds."""
    await bench.forget()
    load = Load(bench.session)
    took = await load.offer("/jobs/batch", lambda _: HUNDRED, per_second=100, seconds=size.seconds)
    await bench.settled()
    p50, p99, most = await bench.quantiles("lateness_ms", 0.5, 0.99, 1.0)
    return [
        Figure(
            "sustained", f"batches of 100 for {size.seconds} s", load.acknowledged / took, "/s", "≥ 10,000"
        ),
        Figure("sustained", "requests refused", load.refused.total(), "", "0"),
        Figure("sustained", "p50 late", p50, "ms"),
        Figure("sustained", "p99 late", p99, "ms", "≤ 250"),
        Figure("sustained", "most late", most, "ms", "≤ 2,000"),
    ]


async def soak(bench: Bench, size: Size) -> list[Figure]:
    """Ten thousand a second by batches and five hundred single POSTs a second, for minutes: nothing may grow."""
    await bench.forget()
    load, row = Load(bench.session), f"soak of {size.soak_seconds} s"
    batches, singles, seen = await asyncio.gather(
        load.offer("/jobs/batch", lambda _: HUNDRED, per_second=100, seconds=size.soak_seconds),
        load.offer("/jobs", lambda _: ONE, per_second=500, seconds=size.soak_seconds),
        _watch(bench, load, size.soak_seconds),
    )
    await bench.settled()
    backlog, unanswered, memory = zip(*seen, strict=True)
    return [
        Figure(row, "reached", load.acknowledged / max(batches, singles), "/s", "≥ 10,500"),
        *load.refusals(row, bar="0"),
        Figure(row, "acknowledged, not completed", await load.lost(bench.database), "", "0"),
        *_flat(row, "jobs waiting or running", backlog, "", lambda first: first + 10_000),
        *_flat(row, "requests waiting for their answer", unanswered, "", lambda first: first + 600),
        *_flat(row, "memory (PSS)", memory, "MiB", lambda first: 1.1 * first),
    ]


async def _watch(bench: Bench, load: Load, seconds: float) -> list[tuple[float, float, float]]:
    """Look now and then at what waits, in the house and before it, and at the memory (MiB)."""
    seen = []
    for _ in range(SAMPLES):
        await asyncio.sleep(seconds / SAMPLES)
        backlog = await bench.database.fetchval("SELECT count(*) FROM onthedot.executions")
        seen.append((float(backlog), float(load.unanswered), await asyncio.to_thread(bench.house.memory_mb)))
    return seen


def _flat(
    row: str, what: str, samples: Sequence[float], unit: str, most: Callable[[float], float]
) -> list[Figure]:
    """Return the means of the thirds; those of the later ones ought to be at most `most` of the first."""
    size = len(samples) // 3
    first, middle, last = (mean(samples[i * size : (i + 1) * size]) for i in range(3))
    bar = f"≤ {most(first):,.0f}"
    return [
        Figure(row, f"{what}, first third", first, unit),
        Figure(row, f"{what}, middle third", middle, unit, bar),
        Figure(row, f"{what}, last third", last, unit, bar),
    ]


async def knee(bench: Bench, size: Size) -> list[Figure]:
    """Rising rates by batches of a hundred, from when a request ought to be sent to the end of its jobs."""
    figures, held = [], 0
    for offered in count(2_000, 2_000):
        reached, p99, refused = await _step(bench, offered, size.step_seconds)
        figures += [
            Figure("knee", f"{offered:,}/s offered for {size.step_seconds} s: reached", reached, "/s"),
            Figure("knee", f"{offered:,}/s offered: p99 from request to end", p99, "ms", f"≤ {MOST_MS:,}"),
            Figure("knee", f"{offered:,}/s offered: requests refused", refused, "", "0"),
        ]
        if p99 > MOST_MS or refused:
            break
        held = offered
    return [*figures, Figure("knee", "the most that held", held, "/s")]


async def _step(bench: Bench, offered: int, seconds: int) -> tuple[float, float, int]:
    """Return how many a second ended, their p99 in milliseconds, and how many requests were not granted."""
    await bench.forget()
    load, template = Load(bench.session), batch(100, sent="INSTANT")
    await load.offer(
        "/jobs/batch",
        lambda instant: template.replace(b'"INSTANT"', b"%.6f" % instant),
        per_second=offered // 100,
        seconds=seconds,
    )
    await bench.settled()
    took = "1000 * (extract(epoch FROM completed_at)::float8 - (parameters ->> 'sent')::float8)"
    [p99] = await bench.quantiles(took, 0.99)
    return await bench.rate(), p99, load.refused.total()


async def singles(bench: Bench, size: Size) -> list[Figure]:
    """Single POSTs over 128 connections."""
    await bench.forget()
    took: list[float] = []
    until = time.perf_counter() + size.seconds / 2

    async def client() -> None:
        while (began := time.perf_counter()) < until:
            await load.send("/jobs", ONE)
            took.append(1000 * (time.perf_counter() - began))

    load, began = Load(bench.session), time.perf_counter()
    await asyncio.gather(*(client() for _ in range(128)))
    rate = len(took) / (time.perf_counter() - began)
    if load.refused.total():
        raise SystemExit(f"{load.refused.total()} single POSTs were refused")
    await bench.settled()
    took.sort()
    return [
        Figure("single POSTs", "128 connections", rate, "/s", "≥ 5,000"),
        Figure("single POSTs", "p50", took[len(took) // 2], "ms"),
        Figure("single POSTs", "p99", took[int(len(took) * 0.99)], "ms", "≤ 60"),
    ]
