"""A row about what waits: how long it takes to say why."""

import time

from benchmarks.bench import Bench, Figure, Size
from benchmarks.rows.drains import wait

ASKED = 200
WARM_UP = 20
"""A session's first statements are prepared."""


async def explain(bench: Bench, size: Size) -> list[Figure]:
    """Of a backlog, executions somewhere in it: why each waits, and behind how many."""
    await bench.forget()
    await wait(bench, "noop", size.spike)
    ids = await bench.database.fetch(
        "SELECT execution_id FROM onthedot.executions ORDER BY random() LIMIT $1", WARM_UP + ASKED
    )
    took = [await _took_ms(bench, f"/api/v1/executions/{row[0]}/explain") for row in ids]
    await bench.post("/queues/general/actions/resume", {})
    await bench.settled()
    took = sorted(took[WARM_UP:])
    row = f"explain at {size.spike:,} waiting"
    return [
        Figure(row, "p50", took[len(took) // 2], "ms", "≤ 20"),
        Figure(row, "p99", took[int(len(took) * 0.99)], "ms", "≤ 20"),
    ]


async def _took_ms(bench: Bench, path: str) -> float:
    began = time.perf_counter()
    async with bench.session.get(path) as answer:
        await answer.read()
        if answer.status >= 400:
            raise SystemExit(f"GET {path} was answered {answer.status}")
    return 1000 * (time.perf_counter() - began)
