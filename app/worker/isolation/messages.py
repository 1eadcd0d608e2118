"""What a worker and the processes of its attempts say to each other, and how it is framed."""

import asyncio
import socket
import struct
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from app.domain.failures import ErrorDescription
from app.domain.recordable import Recorded
from app.worker.capture import Level, Stream

REQUEST: Final = struct.Struct("!qi")
"""To a fork server: a number, and the signal to send to its process; `FORK` and `DESCRIPTORS` make that process."""
REPORT: Final = struct.Struct("!qi?")
"""From it: a number, its process's exit status (-N: killed by signal N), and whether there was one at all; if not,
the error's number."""
FORK: Final = 0
DESCRIPTORS: Final = 3
"""Its end of the line, its standard output, its standard error."""
READY_NUMBER: Final = 0
"""Reported once, when it can fork."""
LONGEST_MESSAGE: Final = 16 * 1024 * 1024
"""In bytes. Ours are far shorter; what announces more than this was not written by us."""
LENGTH_BYTES: Final = 4


class Function(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Call a registered function."""

    name: str
    execution_id: UUID
    job_id: UUID
    attempt_number: int
    scheduled_time: datetime
    fencing_token: int
    timeout_seconds: float
    parameters: str
    """JSON text."""
    upstream: str = "{}"
    """JSON text: what the steps before a step have returned."""
    memory_mb: int


class Command(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Become a command. What is told here ends the conversation: a command knows nothing of it."""

    argv: tuple[str, ...]
    environment: dict[bytes, bytes]
    stdin: bytes
    memory_mb: int
    """0: no limit."""


class Stop(msgspec.Struct, frozen=True, tag=True):
    """Come to an end."""


class Answer(msgspec.Struct, frozen=True, tag=True):
    """What came of a question: a result that is known (JSON text), or an error."""

    question: int
    known: str | None = None
    error: ErrorDescription | None = None


class Output(msgspec.Struct, frozen=True, tag=True):
    """Something was written to `sys.stdout` or `sys.stderr`."""

    stream: Stream
    data: bytes


class Record(msgspec.Struct, frozen=True, tag=True):
    """Something was logged."""

    level: Level
    message: str


class Recall(msgspec.Struct, frozen=True, tag=True):
    """Has an effect been done?"""

    question: int
    key: str


class Remember(msgspec.Struct, frozen=True, tag=True):
    """An effect has been done; note what it came to (JSON text)."""

    question: int
    key: str
    result: str


class Returned(msgspec.Struct, frozen=True, tag=True):
    """The function has returned."""

    result: Recorded


class Raised(msgspec.Struct, frozen=True, tag=True):
    """The function has raised."""

    error: ErrorDescription


class NotStarted(msgspec.Struct, frozen=True, tag=True):
    """The command could not be started."""

    errno: int


ToChild = Function | Command | Stop | Answer
ToWorker = Output | Record | Recall | Remember | Returned | Raised | NotStarted

_to_child = msgspec.msgpack.Decoder(ToChild)
_to_worker = msgspec.msgpack.Decoder(ToWorker)


def framed(message: ToChild | ToWorker) -> bytes:
    """Return a message as it is sent: its length, and it."""
    body = msgspec.msgpack.encode(message)
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


async def read_message(reader: asyncio.StreamReader) -> ToWorker | None:
    """Return what a child says next; None where it says nothing more. Raises `ValueError` for what is no message."""
    try:
        length = int.from_bytes(await reader.readexactly(LENGTH_BYTES), "big")
        if length > LONGEST_MESSAGE:
            raise ValueError("what the process has sent is no message of onthedot")
        return _to_worker.decode(await reader.readexactly(length))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def receive_message(line: socket.socket) -> ToChild | None:
    """Return what the worker says next; None where it has gone. Blocks."""
    header = _receive(line, LENGTH_BYTES)
    body = header and _receive(line, int.from_bytes(header, "big"))
    return _to_child.decode(body) if body else None


def _receive(line: socket.socket, length: int) -> bytes | None:
    received = bytearray()
    while len(received) < length:
        try:
            data = line.recv(length - len(received))
        except ConnectionError:
            data = b""
        if not data:
            return None
        received += data
    return bytes(received)
