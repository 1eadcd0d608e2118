"""What the hot statements and the lists read: one partition, by the index meant for it, whatever lies around."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import product
from typing import Any, TypeAlias
from uuid import UUID, uuid4

import pytest
from psycopg import sql
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.pools import Pool
from app.db.queries import load
from app.db.reads.executions import ExecutionFilters, list_statement
from app.db.reads.paging import Window
from app.domain.cursors import read_cursor, write_cursor
from app.domain.ids import SHARDS, uuid7
from app.domain.statuses import Status
from app.worker.marks import START
from tests.factories import FAILURE, execution_row, finished_row, insert, job_row, make_task, now_of

Node: TypeAlias = Mapping[str, Any]
ROWS = 20_000
BATCH = 100
"""Rows of one settlement."""
CLAIM = 500
"""The largest claim: joined with what it locked, it would be hashed against the whole partition."""
READY = {"executions_ready", "executions_pkey"}
LAPSED = {"executions_lease", "executions_pkey"}
SUSPECTS = {"executions_suspects", "executions_pkey"}
EXPIRING = {"executions_expiring", "executions_pkey"}
LEASED = ({"executions_pkey"}, {"executions_lease"}, {"executions_lease", "executions_pkey"})
"""Rows under a lease are found by their ids or, when a batch is a good part of them, among all that are leased."""


async def test_hot_statements_read_one_partition_by_their_index(
    pool: Pool, subtests: pytest.Subtests
) -> None:
    now, shard = await _fill_live(pool, shards=2), SHARDS[0]
    leased = await pool.fetch(
        "SELECT execution_id FROM onthedot.executions WHERE status = 'RUNNING' AND shard = $1 LIMIT $2",
        shard,
        BATCH,
    )
    ids, epochs = [row["execution_id"] for row in leased], [1] * BATCH
    times, numbers = [now] * BATCH, [1.0] * BATCH
    settled = [["COMPLETED"] * BATCH, ["ran"] * BATCH, times, times, numbers, ["1"] * BATCH, [False] * BATCH]
    settled.append([None] * BATCH)
    failed = [times, times, times, numbers, ["failed"] * BATCH, [FAILURE] * BATCH]
    statements: Sequence[tuple[str, Sequence[object], Sequence[set[str]]]] = (
        ("claim_due", (shard, "general", 2, CLAIM, uuid4(), 30.0, now), [READY]),
        ("claim_ahead", (shard, "general", 2, CLAIM, uuid4(), 30.0, 2.0), [READY]),
        ("reap_scheduled", (shard, CLAIM), [LAPSED]),
        ("reap_running", (shard, CLAIM, FAILURE, START), [LAPSED]),
        ("reap_poison", (shard, CLAIM, FAILURE, START), [SUSPECTS, LAPSED]),
        ("claim_suspect", (shard, "general", 2, uuid4(), 30.0), [SUSPECTS]),
        ("expire_executions", (shard, CLAIM, FAILURE), [EXPIRING]),
        ("arm", (shard, ids, epochs), LEASED),
        ("renew", (shard, ids, epochs, numbers, times), LEASED),
        ("held_leases", (shard, ids, epochs), LEASED),
        ("release", (shard, ids, epochs), LEASED),
        ("settle", (shard, ids, epochs, *settled), LEASED),
        ("retry", (shard, ids, epochs, *failed, [0] * BATCH, uuid4()), LEASED),
    )
    parents = await _declared_indexes(pool)
    for explain, (name, arguments, indexes) in product((_explain, _explain_for_all), statements):
        with subtests.test(name, explain=explain.__name__):
            plan = await explain(pool, load(name), arguments)
            assert _partitions(plan, "executions") == {"executions_p00"}
            assert not _sequential(plan, "executions")
            assert {parents[index] for index in _indexes(plan) if index in parents} in indexes


async def test_the_peek_reads_a_row_a_place_however_many_wait_there(pool: Pool) -> None:
    await _fill_live(pool, shards=16)
    await pool.execute(
        "UPDATE onthedot.executions SET queue = 'bulk' WHERE status = 'PENDING' AND attempt_number = 0"
        " AND get_byte(uuid_send(execution_id), 14) < 128"
    )

    plan = await _explain(pool, load("peek"), (2.0, [], list(SHARDS), [START] * len(SHARDS)), analyze=True)

    places = await pool.fetchval(
        "SELECT count(DISTINCT (shard, queue, priority)) FROM onthedot.executions WHERE status = 'PENDING'"
    )
    removed = ("Rows Removed by Filter", "Rows Removed by Index Recheck")
    scans = [node for node in _nodes(plan) if "Relation Name" in node]
    assert not _sequential(plan, "executions")
    assert sum(node["Actual Rows"] * node["Actual Loops"] for node in scans) == places == 2 * len(SHARDS)
    assert not any(node.get(name) for node in scans for name in removed)


async def test_a_look_for_suspects_reads_nothing_where_there_are_none(pool: Pool) -> None:
    await _fill_live(pool, shards=16)

    plan = await _explain(pool, load("suspects"), ([], 1, "{}", 2.0, 1000), analyze=True)

    parents = await _declared_indexes(pool)
    scans = [node for node in _nodes(plan) if node.get("Relation Name", "").startswith("executions_p")]
    assert {parents[node["Index Name"]] for node in scans} == {"executions_suspects"}
    assert sum(node["Actual Rows"] for node in scans) == 0
    assert _buffers(plan) <= 2 * len(SHARDS)


async def test_a_claim_at_its_mark_does_not_walk_over_what_is_gone(pool: Pool) -> None:
    now = await now_of(pool)
    await make_task(pool)
    rows = ({"job_id": uuid7(i, last_byte=0), "due_in_seconds": i - 5000} for i in range(5000))
    await insert(pool, "executions", (execution_row(now, **row) for row in rows))
    mark = now - timedelta(seconds=100)
    async with pool.acquire() as backup, backup.transaction(isolation="repeatable_read"):
        await backup.fetch("SELECT * FROM onthedot.tasks")  # no vacuum removes what this snapshot could see
        await pool.execute("DELETE FROM onthedot.executions WHERE due_at < $1", mark)

        from_the_mark, from_the_start = [
            await _explain(
                pool, load("claim_due"), (SHARDS[0], "general", 2, 1, uuid4(), 30.0, start), analyze=True
            )
            for start in (mark, START)
        ]

    assert _buffers(_named(from_the_start, "CTE due")) > 100
    assert _buffers(_named(from_the_mark, "CTE due")) < 20


async def test_due_jobs_are_found_by_their_index(pool: Pool) -> None:
    now = await now_of(pool)
    later = now + timedelta(hours=1)
    jobs = [
        job_row(now, job_id=uuid7(i, last_byte=0), materialize_at=later if i % 100 else now)
        for i in range(5000)
    ]
    await insert(pool, "jobs", jobs)
    await pool.execute("ANALYZE onthedot.jobs")

    plan = await _explain(pool, load("due_jobs"), (SHARDS[0], 200))

    parents = await _declared_indexes(pool)
    assert _partitions(plan, "jobs") == {"jobs_p00"}
    assert not _sequential(plan, "jobs")
    assert {parents[index] for index in _indexes(plan)} == {"jobs_materialize"}


async def test_a_page_of_a_list_reads_little_more_than_itself(
    pool: Pool, engine: AsyncEngine, subtests: pytest.Subtests
) -> None:
    now = await now_of(pool)
    busy = await _fill_lists(pool, now)
    middle = read_cursor(write_cursor(now + timedelta(days=7), uuid4(), {}), {})
    lists = {
        "all": ExecutionFilters(),
        "all, future ones too": ExecutionFilters(include_future=True),
        "of a user": ExecutionFilters(user_id="ada"),
        "of a job": ExecutionFilters(job_id=busy),
        "running": ExecutionFilters(status=Status.RUNNING),
        "retrying": ExecutionFilters(status=Status.RETRYING),
        "completed": ExecutionFilters(status=Status.COMPLETED),
        "failed": ExecutionFilters(status=Status.FAILED),
        "failed, of a user": ExecutionFilters(user_id="ada", status=Status.FAILED),
        "failed, of a job": ExecutionFilters(job_id=busy, status=Status.FAILED),
    }
    for name, filters in lists.items():
        for cursor in (None, middle):
            with subtests.test(name, cursor=cursor):
                statement = list_statement(filters, Window(50, cursor, {})).compile(dialect=engine.dialect)
                values = statement.construct_params()
                arguments = [values[key] for key in statement.positiontup or ()]
                plan = await _explain(pool, str(statement), arguments, analyze=True)
                assert plan["Actual Rows"] > 0
                assert max(node["Actual Rows"] * node["Actual Loops"] for node in _nodes(plan)) <= 200
                assert _buffers(plan) < 300


async def _fill_live(pool: Pool, *, shards: int) -> datetime:
    """Fill so many shards: of 20 rows one is due, three are under a lease that has lapsed, the rest are future."""
    kinds: Mapping[int, dict[str, Any]] = {
        0: {"due_in_seconds": -1},
        1: {"status": Status.RUNNING, "lease_ends_in_seconds": -1},
        2: {"status": Status.RUNNING, "lease_ends_in_seconds": -1, "attempt_number": 4},
        3: {"status": Status.SCHEDULED, "lease_ends_in_seconds": -1},
    }

    def live(i: int) -> dict[str, Any]:
        job_id = uuid7(i, last_byte=i % shards)
        return {"job_id": job_id, "due_in_seconds": 60 + i} | kinds.get(i // shards % 20, {})

    await make_task(pool)
    now = await now_of(pool)
    await insert(pool, "executions", (execution_row(now, **live(i)) for i in range(ROWS)))
    await pool.execute("ANALYZE onthedot.executions")
    return now


async def _fill_lists(pool: Pool, now: datetime) -> UUID:
    """Fill the live table and two weeks of history: half of the rows are one job's and ada's, some have failed."""
    busy, others = uuid7(0), [uuid7(i) for i in range(100)]
    await insert(pool, "jobs", [job_row(now, job_id=job_id) for job_id in (busy, *others)])
    await make_task(pool)

    def owner(i: int) -> dict[str, Any]:
        return {"job_id": busy} if i % 2 else {"job_id": others[i % 100], "user_id": f"user-{i % 50}"}

    def live(i: int) -> dict[str, Any]:
        rare = {0: Status.RUNNING, 1: Status.RUNNING, 2: Status.RETRYING, 3: Status.RETRYING}
        return owner(i) | {"due_in_seconds": i - 1000, "status": rare.get(i % 1000, Status.PENDING)}

    def finished(i: int) -> dict[str, Any]:
        return owner(i) | {"ended_seconds_ago": -60 * i} | ({"status": Status.FAILED} if i % 4000 < 2 else {})

    await insert(pool, "executions", (execution_row(now, **live(i)) for i in range(ROWS)))
    await insert(pool, "execution_history", (finished_row(now, **finished(i)) for i in range(ROWS)))
    await pool.execute("ANALYZE")
    return busy


async def _explain(pool: Pool, query: str, arguments: Sequence[object], *, analyze: bool = False) -> Node:
    options = "ANALYZE, BUFFERS, FORMAT JSON" if analyze else "FORMAT JSON"
    plan: Node = json.loads(await pool.fetchval(f"EXPLAIN ({options}) {query}", *arguments))[0]["Plan"]
    return plan


async def _explain_for_all(pool: Pool, query: str, arguments: Sequence[object]) -> Node:
    """Explain the one plan for all values that a worker's sessions make, run with these."""
    values = ", ".join(sql.Literal(argument).as_string() for argument in arguments)
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute(
            "SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_seqscan = off;"
            " SET LOCAL enable_bitmapscan = off"
        )
        await connection.execute(f"PREPARE for_all AS {query}")
        explained = await connection.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE for_all ({values})")
        await connection.execute("DEALLOCATE for_all")
    plan: Node = json.loads(explained)[0]["Plan"]
    return plan


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)


def _partitions(plan: Node, table: str) -> set[str]:
    names = {node.get("Relation Name", "") for node in _nodes(plan)}
    return {name for name in names if name.startswith(f"{table}_p")}


def _sequential(plan: Node, table: str) -> list[Node]:
    return [
        node
        for node in _nodes(plan)
        if node["Node Type"] == "Seq Scan" and node["Relation Name"].startswith(f"{table}_p")
    ]


def _indexes(plan: Node) -> set[str]:
    return {node["Index Name"] for node in _nodes(plan) if "Index Name" in node}


def _named(plan: Node, name: str) -> Node:
    return next(node for node in _nodes(plan) if node.get("Subplan Name") == name)


def _buffers(plan: Node) -> int:
    pages: int = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    return pages


async def _declared_indexes(pool: Pool) -> dict[str, str]:
    """Return, by the name of a partition's index, that of the index on the whole table."""
    rows = await pool.fetch(
        "SELECT part.relname, whole.relname FROM pg_inherits"
        "  JOIN pg_class AS part ON part.oid = inhrelid JOIN pg_class AS whole ON whole.oid = inhparent"
        " WHERE part.relkind = 'i'"
    )
    return {row[0]: row[1] for row in rows}
