"""Ids and shards.

Ids of jobs and executions are UUIDv7 (RFC 9562, 5.7): time-ordered, so that inserts touch few index pages
(random ids cost a third of the throughput). An execution's last byte repeats its job's: either id tells the shard.
"""

from datetime import datetime
from itertools import count
from random import getrandbits, randrange
from typing import NewType
from uuid import UUID

JobId = NewType("JobId", UUID)
ExecutionId = NewType("ExecutionId", UUID)
Shard = NewType("Shard", int)

SHARDS: tuple[Shard, ...] = tuple(
    Shard(value) for value in (298, 455, 115, 290, 292, 96, 844, 65, 108, 415, 336, 574, 752, 41, 80, 289)
)
"""The 16 shard values, indexed by the last byte of an id modulo 16.

They look odd because PostgreSQL's own hash puts exactly one of them in each of 16 hash partitions
(0 to 15 would leave four partitions empty and fill four twice), and Citus's hash ranges do the same.
`tests/db/test_shards.py` asks PostgreSQL whether that still holds.
"""

RUN = 128
"""So many jobs that a process makes one after the other lie in one shard, and the next ones in the next.

A statement that writes into a partition opens its indexes and reads its conditions first, 0.2 ms a shard: 22 jobs of
all shards took 5.1 ms to store, 22 of one take 1.8 (100: 9.4 and 4.7), and one claim finds them all.
"""
_made = count(randrange(RUN * len(SHARDS)))  # noqa: S311 - processes begin in different shards

_VERSION_AND_VARIANT = (0x7 << 76) | (0b10 << 62)


def uuid7(unix_microseconds: int, *, last_byte: int | None = None) -> UUID:
    """Make a UUIDv7 of an instant, in microseconds since 1970; its 12 bits after the version hold the
    fraction of the millisecond (RFC 9562, 6.2, method 3), so that ids of one process sort by time."""
    milliseconds, fraction = divmod(unix_microseconds, 1000)
    tail = getrandbits(62)
    if last_byte is not None:
        tail = (tail & ~0xFF) | last_byte
    head = (milliseconds & 0xFFFF_FFFF_FFFF) << 80 | (fraction * 4096 // 1000) << 64
    return UUID(int=head | _VERSION_AND_VARIANT | tail)


def least_id(instant: datetime) -> UUID:
    """Return an id below those that are made at an instant or later, and above those made a millisecond before."""
    return UUID(int=int(instant.timestamp() * 1000) << 80)


def new_job_id(unix_microseconds: int) -> JobId:
    """Make the id of a job created at this instant; those that are made one after the other lie together (`RUN`)."""
    shard = next(_made) // RUN % len(SHARDS)
    return JobId(uuid7(unix_microseconds, last_byte=getrandbits(4) << 4 | shard))


def new_execution_id(job_id: UUID, unix_microseconds: int) -> ExecutionId:
    """Make the id of an execution of `job_id`; it lies in its job's shard."""
    return ExecutionId(uuid7(unix_microseconds, last_byte=job_id.int & 0xFF))


def shard_of(any_id: UUID) -> Shard:
    """Return the shard of a job's or an execution's id."""
    return SHARDS[any_id.int & 0xF]
