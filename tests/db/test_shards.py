"""Either id of an execution tells its shard, to Python and to PostgreSQL alike, and a shard is a partition."""

import random
from uuid import UUID

import asyncpg
import pytest

from app.db.pools import Pool
from app.domain.ids import SHARDS, new_execution_id, new_job_id, shard_of
from tests.factories import execution_row, insert, job_row, now_of

TABLES = ("jobs", "executions", "ledger_ranges", "effects")
"""Tables that are hash-partitioned by the shard."""


async def test_the_shards_fill_the_hash_partitions_one_each(pool: Pool) -> None:
    for table in TABLES:
        homes = await pool.fetch(
            "SELECT shard, array_agg(remainder) AS remainders"
            "  FROM unnest($1::int2[]) AS shard, generate_series(0, 15) AS remainder"
            " WHERE satisfies_hash_partition($2::regclass, 16, remainder, shard)"
            " GROUP BY shard",
            list(SHARDS),
            f"onthedot.{table}",
        )

        assert {home["shard"] for home in homes} == set(SHARDS)
        assert sorted(home["remainders"] for home in homes) == [[i] for i in range(16)]


async def test_python_and_sql_name_the_same_shard(pool: Pool) -> None:
    ids = [UUID(int=random.getrandbits(128)) for _ in range(1000)]
    jobs = [new_job_id(random.getrandbits(50)) for _ in range(1000)]
    executions = [new_execution_id(job_id, random.getrandbits(50)) for job_id in jobs]

    for some in (ids, jobs, executions):
        rows = await pool.fetch("SELECT onthedot.shard_of(id) FROM unnest($1::uuid[]) AS id", some)
        assert [row[0] for row in rows] == [shard_of(one) for one in some]

    assert [shard_of(one) for one in jobs] == [shard_of(one) for one in executions]


async def test_a_row_in_a_shard_that_its_ids_deny_is_refused(pool: Pool) -> None:
    now = await now_of(pool)
    job, execution = job_row(now), execution_row(now)
    own = shard_of(job["job_id"])
    foreign = next(shard for shard in SHARDS if shard != own)
    cousin = UUID(int=execution["execution_id"].int ^ 0x10)  # the same shard by another last byte
    stranger = UUID(int=execution["job_id"].int ^ 0x01)  # a job of another shard
    assert shard_of(cousin) == execution["shard"] != shard_of(stranger)

    for table, row, constraint in (
        ("jobs", job | {"shard": foreign}, "jobs_shard_is_the_ids"),
        ("executions", execution | {"execution_id": cousin}, "executions_shard_is_the_ids"),
        ("executions", execution | {"job_id": stranger}, "executions_shard_is_the_ids"),
    ):
        with pytest.raises(asyncpg.CheckViolationError) as refusal:
            await insert(pool, table, [row])
        assert refusal.value.constraint_name == constraint

    await insert(pool, "jobs", [job])
    await insert(pool, "executions", [execution])
