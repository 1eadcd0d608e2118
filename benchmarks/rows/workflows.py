"""Rows of the benchmark about workflows: how fast a run goes on from step to step."""

import asyncio
import time
from typing import Any

from benchmarks.bench import PATIENCE_SECONDS, Bench, Figure, Size

CHAIN = 100
FAN = 10_000
DIAMONDS = 1_000
REPEATS = 5
_TOOK = """SELECT extract(epoch FROM completed_at - started_at)::float8
             FROM onthedot.workflow_runs WHERE workflow_run_id = $1::text::uuid AND status = 'COMPLETED'"""
_STEPS = """SELECT percentile_disc(ARRAY[0.5, 0.99]) WITHIN GROUP (ORDER BY lateness_ms)
              FROM onthedot.execution_history WHERE trigger = 'workflow'"""


def _step(key: str, *before: str, **fields: object) -> dict[str, Any]:
    return {"key": key, "task_id": "noop", "depends_on": list(before)} | fields


async def chain(bench: Bench, _size: Size) -> list[Figure]:
    """A run of a hundred steps, one after the other."""
    await bench.forget()
    steps = [_step("s0"), *(_step(f"s{i}", f"s{i - 1}") for i in range(1, CHAIN))]
    took = [await _run(bench, steps) for _ in range(REPEATS)]
    p50, p99 = await bench.database.fetchval(_STEPS)
    return [
        Figure("chain of 100 steps", "median run", sorted(took)[REPEATS // 2], "s", "≤ 1"),
        Figure("chain of 100 steps", "p50 from release to start", p50, "ms"),
        Figure("chain of 100 steps", "p99 from release to start", p99, "ms", "≤ 50"),
    ]


async def fan(bench: Bench, _size: Size) -> list[Figure]:
    """A step for each of ten thousand items, and one after all of them."""
    await bench.forget()
    steps = [_step("a"), _step("m", "a", map=list(range(FAN))), _step("z", "m")]
    took = [await _run(bench, steps) for _ in range(REPEATS)]
    return [Figure("10,000 items and back", "median run", sorted(took)[REPEATS // 2], "s", "≤ 3")]


async def diamonds(bench: Bench, _size: Size) -> list[Figure]:
    """A thousand runs of four steps, begun as fast as they come in."""
    await bench.forget()
    steps = [_step("top"), _step("left", "top"), _step("right", "top"), _step("join", "left", "right")]
    made = await bench.post("/workflows", {"schedule": {"type": "IMMEDIATE"}, "steps": steps})
    path = f"/workflows/{made['workflow_id']}/actions/run"
    turns = asyncio.Semaphore(32)

    async def begin() -> None:
        async with turns:
            await bench.post(path, {})

    await asyncio.gather(*(begin() for _ in range(DIAMONDS - 1)))
    await bench.settled()
    p50, p99 = await bench.database.fetchval(_STEPS)
    joins = await bench.database.fetchval(
        "SELECT count(*) FROM onthedot.execution_history WHERE run_key LIKE 'w:%/join/%'"
    )
    return [
        Figure("1,000 diamonds", "joins that ran", joins, "", "1,000"),
        Figure("1,000 diamonds", "p50 from release to start", p50, "ms"),
        Figure("1,000 diamonds", "p99 from release to start", p99, "ms", "≤ 50"),
    ]


async def _run(bench: Bench, steps: list[dict[str, Any]]) -> float:
    """Have a workflow run once; return how long the run took, in seconds."""
    made = await bench.post("/workflows", {"schedule": {"type": "IMMEDIATE"}, "steps": steps})
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (took := await bench.database.fetchval(_TOOK, str(made["workflow_run_id"]))) is None:
        if time.monotonic() > deadline:
            raise SystemExit("a workflow run did not complete in time")
        await asyncio.sleep(0.1)
    return float(took)
