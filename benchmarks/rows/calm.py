"""Rows of a house in which little or nothing happens."""

import asyncio
import time

from benchmarks.bench import Bench, Figure, Size


async def idle(bench: Bench, size: Size) -> list[Figure]:
    """Nothing happens."""
    await asyncio.sleep(30)  # what comes with the start is over: plans, the first looks around
    before, began = bench.house.spent(), time.perf_counter()
    await asyncio.sleep(size.seconds)
    share = bench.house.spent().since(before).whole / (time.perf_counter() - began)
    return [
        Figure("idle", "of a core", 100 * share, "%", "≤ 1"),
        Figure("idle", "memory (PSS, no shared buffers)", bench.house.memory_mb(), "MiB", "≤ 400"),
    ]


async def quiet(bench: Bench, size: Size) -> list[Figure]:
    """One POST each 20 ms while nothing else happens: from the request to the start of the handler.

    Beside it what a request takes of which no database is asked, at the same pace.
    """
    bare = await _bare_requests(bench, size)
    await bench.forget()
    sent: dict[str, float] = {}
    for _ in range(50 * size.seconds // 2):
        began = time.time()
        answer = await bench.post("/jobs", {"task_id": "noop", "schedule": {"type": "IMMEDIATE"}})
        sent[str(answer["execution_id"])] = began
        await asyncio.sleep(max(0.0, began + 0.02 - time.time()))
    await bench.settled()
    rows = await bench.database.fetch(
        "SELECT execution_id::text, extract(epoch FROM started_at)::float8 FROM onthedot.execution_history"
    )
    waits = sorted(1000 * (started - sent[execution]) for execution, started in rows)
    return [
        Figure("one POST each 20 ms", "p50 of a GET that asks no database", bare[len(bare) // 2], "ms"),
        Figure("one POST each 20 ms", "p99 of it", bare[int(len(bare) * 0.99)], "ms"),
        Figure("one POST each 20 ms", "p50 from request to start", waits[len(waits) // 2], "ms", "≤ 4"),
        Figure(
            "one POST each 20 ms", "p99 from request to start", waits[int(len(waits) * 0.99)], "ms", "≤ 10"
        ),
    ]


async def _bare_requests(bench: Bench, size: Size) -> list[float]:
    """Return what requests take, each 20 ms one, in ms, the quickest first."""
    took = []
    for _ in range(50 * size.seconds // 4):
        began = time.perf_counter()
        async with bench.session.get("/healthz") as answer:
            await answer.read()
        took.append(1000 * (time.perf_counter() - began))
        await asyncio.sleep(max(0.0, began + 0.02 - time.perf_counter()))
    return sorted(took)
