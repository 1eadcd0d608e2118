"""Ids are UUIDv7: they sort by time, never repeat, and tell their shard."""

import random
from collections import Counter
from datetime import UTC, datetime
from itertools import pairwise
from uuid import RFC_4122, UUID

from hypothesis import given
from hypothesis import strategies as st

from app.domain.ids import RUN, SHARDS, new_execution_id, new_job_id, shard_of, uuid7

MICROSECONDS = st.integers(0, int(datetime(9999, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000)
IDS = st.integers(0, 2**128 - 1).map(lambda number: UUID(int=number))


@given(microseconds=MICROSECONDS)
def test_is_a_uuid_of_version_7_that_tells_its_millisecond(microseconds: int) -> None:
    made = uuid7(microseconds)

    assert made.version == 7
    assert made.variant == RFC_4122
    assert made.int >> 80 == microseconds // 1000


@given(earlier=MICROSECONDS, distance=st.integers(1, 10**9))
def test_ids_of_different_microseconds_sort_by_time(earlier: int, distance: int) -> None:
    assert uuid7(earlier) < uuid7(earlier + distance)
    assert str(uuid7(earlier)) < str(uuid7(earlier + distance))


def test_every_microsecond_of_a_millisecond_has_its_place() -> None:
    made = [uuid7(1_700_000_000_000_000 + microsecond) for microsecond in range(1001)]

    assert made == sorted(made)


def test_ids_of_one_microsecond_do_not_repeat() -> None:
    job_id = new_job_id(1_700_000_000_000_000)

    assert len({new_job_id(1_700_000_000_000_000) for _ in range(100_000)}) == 100_000
    assert len({new_execution_id(job_id, 1_700_000_000_000_000) for _ in range(100_000)}) == 100_000


@given(job_id=IDS, microseconds=MICROSECONDS)
def test_an_execution_ends_in_its_jobs_last_byte(job_id: UUID, microseconds: int) -> None:
    execution_id = new_execution_id(job_id, microseconds)

    assert execution_id.bytes[15] == job_id.bytes[15]
    assert shard_of(execution_id) == shard_of(job_id)
    assert execution_id.version == 7
    assert execution_id.int >> 80 == microseconds // 1000


def test_jobs_spread_evenly_over_16_shards() -> None:
    counts = Counter(shard_of(new_job_id(random.getrandbits(50))) for _ in range(16_000))

    assert set(counts) == set(SHARDS)
    assert len(SHARDS) == len(set(SHARDS)) == 16
    assert all(800 < count < 1200 for count in counts.values())  # 6 standard deviations around 1,000


def test_jobs_that_are_made_one_after_the_other_lie_together() -> None:
    shards = [shard_of(new_job_id(0)) for _ in range(RUN * len(SHARDS))]

    assert sum(before != after for before, after in pairwise(shards)) <= len(SHARDS)
    assert set(Counter(shards).values()) == {RUN}
