"""The four journals of a run, each kept by somebody else, none in the database under test.

P, what producers asked for and were told; E, what handlers did; W, what was committed, in that order; N, what was
broken. Moments are seconds of `CLOCK_MONOTONIC`, which all processes of one machine share and nobody sets; only W has
the server's own time, and a pair in N maps one onto the other.

A journal is a file of JSON lines. Several processes append to a folder of them, a line in one `write`.
"""

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")


class Asked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """P: a step of an operation. `invoke`, and then `ok`, `fail` (surely not done) or `info` (may be done or not).

    A producer that was told nothing asks again under the same Idempotency-Key: that is the same operation.
    `keys` are the marks of the jobs, which stand in their parameters: they are known before there are ids.
    """

    operation: int
    action: str
    phase: str
    at: float
    keys: tuple[str, ...] = ()
    execution_id: str | None = None
    status: int | None = None
    retry_after: bool = False


class Effect(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """E: a handler has begun or ended."""

    phase: str
    """`start`, `ok`, `failed`, `stopped` (told to by the worker)."""
    execution_id: str
    job_id: str
    key: str
    attempt: int
    token: int
    pid: int
    at: float
    wall: float
    """By the process's own clock, which may be wrong."""


class Change(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """W: one row that a transaction changed. `columns` has what the log has: of a deleted row, its key."""

    transaction: int
    """Counts commits, from the first one on."""
    at: float
    """When it was committed, in seconds since 1970 by the server's clock."""
    table: str
    action: str
    execution_id: str
    columns: dict[str, str | None] = {}


class Fault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """N: something was broken from `began` to `ended`. `target`: `pid 4711`, or `database` or `all`."""

    kind: str
    target: str
    began: float
    ended: float
    seed: int
    detail: str = ""


class Clock(msgspec.Struct, frozen=True, kw_only=True):
    """N: what the server's clock showed at a moment."""

    at: float
    wall: float


class Journal:
    """A file that events are appended to: each is one `write`, so that a killed process leaves whole lines."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def append(self, event: msgspec.Struct) -> None:
        """Write down an event."""
        os.write(self._file, msgspec.json.encode(event) + b"\n")

    def close(self) -> None:
        """Append no more."""
        os.close(self._file)


def read(path: Path, kind: type[T]) -> list[T]:
    """Return the events of a file, or of all files of a folder; what is not there is empty."""
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path] if path.exists() else []
    decoder = msgspec.json.Decoder(kind)
    return [event for file in files for event in decoder.decode_lines(file.read_bytes())]


def write(path: Path, events: Iterable[msgspec.Struct]) -> None:
    """Write a journal as a whole."""
    path.write_bytes(msgspec.json.Encoder().encode_lines(list(events)))


def now() -> float:
    """Return the moment."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)
