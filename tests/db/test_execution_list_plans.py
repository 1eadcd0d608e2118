"""What the list of executions reads: by an index little more than a page, else so many rows and no more."""

import pytest
from sqlalchemy import Select
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.pools import Pool
from app.db.reads import execution_list
from app.db.reads.execution_list import _count_statement, _end_of, _page_statement
from app.db.reads.execution_walks import ListFilters, walks_of
from app.db.reads.paging import Window
from app.domain.statuses import Status
from tests.db.test_query_plans import Node, _explain, _fill_lists, _nodes
from tests.factories import now_of

WAITING = frozenset({Status.BLOCKED, Status.PENDING, Status.SCHEDULED, Status.RETRYING})
LOOKED_AT = 400
MOST_ROWS = 250
A_DAY = 1_500
"""Rows of a partition here: a good part of one is quicker read whole. All of them are 40,000."""
FEW_BLOCKS = 16
"""A partition of no more is quicker read whole, too: here, late in the day, the rest of today."""


async def test_lists_and_counts_read_what_they_show_or_a_bounded_number_of_rows(
    pool: Pool, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    now = await now_of(pool)
    busy = await _fill_lists(pool, now)
    await pool.execute(
        "UPDATE onthedot.execution_history SET disposition = 'late', lateness_ms = 5000"
        " WHERE status = 'COMPLETED' AND get_byte(uuid_send(execution_id), 14) < 8"
    )
    await pool.execute("ANALYZE")
    monkeypatch.setattr(execution_list, "MOST_LOOKED_AT", LOOKED_AT)
    monkeypatch.setattr(execution_list, "COUNTED_AMONG", LOOKED_AT)
    monkeypatch.setattr(execution_list, "MOST_COUNTED", 100)
    by_index = {
        "all": ListFilters(),
        "with what is planned": ListFilters(include_future=True),
        "running": ListFilters(statuses=frozenset({Status.RUNNING})),
        "failed": ListFilters(statuses=frozenset({Status.FAILED})),
        "of a job": ListFilters(job_id=busy),
        "of a user": ListFilters(user_id="ada"),
        "until then": ListFilters(until=now),
        "from then on": ListFilters(since=now, include_future=True),
    }
    row_by_row = {
        "waiting": ListFilters(statuses=WAITING, include_future=True),
        "late": ListFilters(late=True),
        "of a task there is not": ListFilters(task_id="nope", include_future=True),
        "of a priority there is not": ListFilters(priority=0),
        "of a job, late": ListFilters(job_id=busy, late=True),
        "of a user, in a queue there is not": ListFilters(user_id="ada", queue="nope"),
    }
    for name, filters in (by_index | row_by_row).items():
        walks = walks_of(filters, {"critical": 100})
        async with engine.connect() as connection:
            end = await _end_of(connection, walks, None)
        for statement in (
            _page_statement(walks, Window(50, None, {}), end),
            *(_count_statement(i, walk) for i, walk in enumerate(walks)),
        ):
            with subtests.test(name):
                plan = await _plan(pool, engine, statement)
                most = MOST_ROWS if name in by_index else LOOKED_AT + A_DAY
                assert max(_passed(node) for node in _nodes(plan) if not _reads_a_small_table(node)) <= most
                assert _blocks(plan) <= 4 * most


def _reads_a_small_table(node: Node) -> bool:
    return node["Node Type"] == "Seq Scan" and _blocks(node) <= FEW_BLOCKS


def _blocks(node: Node) -> int:
    read: int = node["Shared Hit Blocks"] + node["Shared Read Blocks"]
    return read


def _passed(node: Node) -> float:
    """Return how many rows a node has looked at."""
    removed = node.get("Rows Removed by Filter", 0)
    rows: float = (node["Actual Rows"] + removed) * node["Actual Loops"]
    return rows


async def _plan(pool: Pool, engine: AsyncEngine, statement: Select[tuple[object]]) -> Node:
    compiled = statement.compile(dialect=engine.dialect)
    values = compiled.construct_params()
    return await _explain(
        pool, str(compiled), [values[key] for key in compiled.positiontup or ()], analyze=True
    )
