"""`shell:ARGV`: a command, without a shell."""

import errno
import json
import os
import re
import signal
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC
from functools import partial

import msgspec

from app.domain.command import parse_command
from app.domain.recordable import RESULT_LIMIT_BYTES
from app.domain.text import clean_text
from app.tasks import Context
from app.worker.attempt import Attempt
from app.worker.capture import ExecutionLog, Stream
from app.worker.isolation.ends import failure_of_end
from app.worker.isolation.launcher import Launcher
from app.worker.isolation.messages import Command, NotStarted

LONGEST_VARIABLE_BYTES = 100_000
"""Linux takes 128 KiB for one; a longer parameter is on standard input only."""
SAID_CHARACTERS = 500
"""Of what a command has said last on standard error, in the message of its failure."""
_NO_NAME = re.compile(r"[^A-Z0-9_]")


class CommandUnavailable(Exception):
    """The command cannot be started here."""

    category = "configuration_error"


class ShellHandler:
    """Runs commands. `environment` is what all of them get, besides what tells them of their execution."""

    def __init__(self, launcher: Launcher, *, environment: Mapping[str, str]) -> None:
        self._launcher = launcher
        self._environment = environment

    def bind(self, text: str) -> Callable[[Attempt], Awaitable[object]]:
        """Return what runs this command line. Raises `InvalidInput`."""
        argv = parse_command(text)
        return lambda attempt: self._run(argv, attempt)

    async def _run(self, argv: tuple[str, ...], attempt: Attempt) -> object:
        """Run the command; return the last line that it has written to standard output.

        As JSON says if it is JSON, else as text; None where it has written nothing. Raises `ExitStatus`,
        `KilledBySignal`, `CommandUnavailable`.
        """
        said, complained = LastLine(attempt.log, "stdout"), LastLine(attempt.log, "stderr")
        async with self._launcher.launched(stdout=said.take, stderr=complained.take) as process:
            try:
                process.send(self._order(argv, attempt))
                message = await process.receive()
                status = await process.ended()
            finally:
                if attempt.stop is not None:
                    await process.stop(partial(process.signal, signal.SIGTERM))
        if isinstance(message, NotStarted):
            raise CommandUnavailable(f"{argv[0]} cannot be started: {_why(message.errno)}")
        if status != 0:
            raise failure_of_end(argv[0], status, said=clean_text(complained.text, SAID_CHARACTERS))
        return said.value

    def _order(self, argv: tuple[str, ...], attempt: Attempt) -> Command:
        environment = (
            dict(self._environment) | _of_parameters(attempt.context) | _of_execution(attempt.context)
        )
        return Command(
            argv=argv,
            environment={os.fsencode(name): os.fsencode(text) for name, text in environment.items()},
            stdin=attempt.claim.parameters.encode(),
            memory_mb=attempt.task.memory_mb if attempt.task else 0,
        )


class LastLine:
    """Hands an output on to a log and keeps its last line that is not blank, as much of it as a result may have."""

    def __init__(self, log: ExecutionLog, stream: Stream) -> None:
        self._log = log
        self._stream: Stream = stream
        self._whole = b""
        self._open = bytearray()

    @property
    def text(self) -> str:
        """Return the line."""
        return (bytes(self._open).strip() or self._whole).decode(errors="replace")

    @property
    def value(self) -> object:
        """Return what the line says: a value if it is JSON, else itself; None where there is none."""
        try:
            return msgspec.json.decode(self.text)
        except (msgspec.DecodeError, RecursionError):
            return self.text or None

    def take(self, data: bytes) -> None:
        """Take what comes next."""
        self._log.write_bytes(data, stream=self._stream)
        *ended, rest = data.split(b"\n")
        for part in ended:
            self._append(part)
            self._whole = bytes(self._open).strip() or self._whole
            self._open.clear()
        self._append(rest)

    def _append(self, part: bytes) -> None:
        self._open += part[: RESULT_LIMIT_BYTES + 1 - len(self._open)]


def _why(number: int) -> str:
    hint = "; a script begins with a line such as #!/bin/sh" if number == errno.ENOEXEC else ""
    return os.strerror(number) + hint


def _of_parameters(context: Context) -> dict[str, str]:
    """Return each parameter as `ONTHEDOT_PARAM_NAME`: text as it is, anything else as JSON."""
    texts = {
        f"ONTHEDOT_PARAM_{_NO_NAME.sub('_', name.upper())}": (
            value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        )
        for name, value in context.parameters.items()
    }
    return {name: text for name, text in texts.items() if len(os.fsencode(text)) <= LONGEST_VARIABLE_BYTES}


def _of_execution(context: Context) -> dict[str, str]:
    return {
        "ONTHEDOT_EXECUTION_ID": str(context.execution_id),
        "ONTHEDOT_JOB_ID": str(context.job_id),
        "ONTHEDOT_ATTEMPT_NUMBER": str(context.attempt_number),
        "ONTHEDOT_FENCING_TOKEN": str(context.fencing_token),
        "ONTHEDOT_SCHEDULED_TIME": context.scheduled_time.astimezone(UTC).isoformat().replace("+00:00", "Z"),
    }
