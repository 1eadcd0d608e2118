"""Routes what handlers log and print into the log of their execution. Installed once in a worker process."""

import io
import logging
import sys
from collections.abc import Callable, Iterable
from typing import BinaryIO, Literal, Protocol, TextIO, cast

from app.worker.capture import Level, current_log

Buffer = bytes | bytearray | memoryview


class OutputCapture:
    """Puts itself in front of `sys.stdout`, `sys.stderr` and the root logger, and takes itself out again.

    What is written in the context of an execution (`ExecutionLog.capturing`) goes into that execution's log;
    anything else goes where it went before, and so does what a handler's leftover thread writes after its
    log was closed. Captured log records still reach the process's own log, captured prints do not reach
    its stdout. Out of reach: file descriptors 1 and 2 themselves (subprocesses, C libraries), loggers that
    do not propagate, and streams whose writer took hold of them before.

    Install it after logging has been configured.
    """

    def __init__(self) -> None:
        self._handler = LogHandler()
        self._streams: tuple[TextIO, TextIO] | None = None
        self._levels: list[tuple[logging.Logger | logging.Handler, int]] = []

    def install(self) -> None:
        """Begin to capture."""
        self._streams = (sys.stdout, sys.stderr)
        sys.stdout = cast("TextIO", CapturedStream(sys.stdout, "stdout"))
        sys.stderr = cast("TextIO", CapturedStream(sys.stderr, "stderr"))
        self._let_info_through(logging.getLogger())
        logging.getLogger().addHandler(self._handler)

    def remove(self) -> None:
        """Leave everything as it was."""
        if self._streams is None:
            return
        sys.stdout, sys.stderr = self._streams
        self._streams = None
        logging.getLogger().removeHandler(self._handler)
        while self._levels:
            owner, level = self._levels.pop()
            owner.setLevel(level)

    def _let_info_through(self, root: logging.Logger) -> None:
        owners: list[logging.Logger | logging.Handler] = [root, *root.handlers]
        levels = [(each, each.level) for each in owners]
        let_info_through(root)
        self._levels = [(each, level) for each, level in levels if each.level != level]


def let_info_through(root: logging.Logger) -> None:
    """Lower the root's level to INFO, and give its other handlers the threshold that it had."""
    threshold = root.level
    if threshold <= logging.INFO:
        return
    root.setLevel(logging.INFO)
    for handler in root.handlers:
        if handler.level < threshold:
            handler.setLevel(threshold)


class LineSink(Protocol):
    """What takes a line of a log."""

    def add_line(self, message: str, *, level: Level) -> bool:
        """Add one whole line; False where it is not wanted any more."""


class LogHandler(logging.Handler):
    """Writes records into the log that `log` names: of the execution in whose context they were made."""

    def __init__(
        self, level: int = logging.INFO, *, log: Callable[[], LineSink | None] = current_log
    ) -> None:
        super().__init__(level)
        self._log = log
        self.setFormatter(logging.Formatter("%(message)s"))

    def handle(self, record: logging.LogRecord) -> bool:
        """Emit without this handler's lock: the log has its own, and whoever holds that one may log."""
        self.emit(record)
        return True

    def emit(self, record: logging.LogRecord) -> None:
        log = self._log()
        if log is not None:
            log.add_line(self._text(record), level=_level_name(record.levelno))

    def _text(self, record: logging.LogRecord) -> str:
        try:
            return self.format(record)
        except Exception:  # noqa: BLE001 - arguments that do not fit, or whose __str__ raises
            message = record.msg if isinstance(record.msg, str) else type(record.msg).__name__
            return f"{message} [the arguments of this record cannot be formatted]"


def _level_name(number: int) -> Level:
    """Return the standard level at or below `number`: programs invent their own, readers filter by five."""
    names: tuple[tuple[int, Level], ...] = (
        (logging.CRITICAL, "CRITICAL"),
        (logging.ERROR, "ERROR"),
        (logging.WARNING, "WARNING"),
        (logging.INFO, "INFO"),
    )
    return next((name for least, name in names if number >= least), "DEBUG")


class CapturedStream(io.TextIOBase):
    """Stands in for `sys.stdout` or `sys.stderr`: decides at each write whose output it is."""

    def __init__(self, original: TextIO, stream: Literal["stdout", "stderr"]) -> None:
        self._original = original
        self._stream = stream
        self.buffer = _CapturedBuffer(original, stream)

    def write(self, text: str) -> int:
        log = current_log()
        if log is not None and log.write(text, stream=self._stream):
            return len(text)
        return self._original.write(text)

    def writelines(self, lines: Iterable[str]) -> None:  # type: ignore[override]  # typeshed knows Buffers only
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        if current_log() is None:
            self._original.flush()

    def close(self) -> None:
        """Stay open: a handler must not close the output of its neighbours."""

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return current_log() is None and self._original.isatty()

    def fileno(self) -> int:
        return self._original.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # read-only here
        return self._original.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return self._original.errors

    def __getattr__(self, name: str) -> object:
        return getattr(self._original, name)


class _CapturedBuffer(io.BufferedIOBase):
    """The same for `sys.stdout.buffer`."""

    def __init__(self, original: TextIO, stream: Literal["stdout", "stderr"]) -> None:
        self._original = original
        self._stream = stream

    def write(self, data: Buffer) -> int:  # type: ignore[override]  # any Buffer that memoryview takes
        log = current_log()
        if log is not None and log.write_bytes(data, stream=self._stream):
            return memoryview(data).nbytes
        return self._beneath.write(data)

    def flush(self) -> None:
        if current_log() is None:
            self._beneath.flush()

    def close(self) -> None:
        """Stay open."""

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._original.fileno()

    @property
    def _beneath(self) -> BinaryIO:
        return self._original.buffer
