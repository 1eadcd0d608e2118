"""The log of one attempt: what its handler logs and prints, as lines, within bounds."""

import codecs
import re
from collections.abc import Callable
from contextvars import ContextVar, Token
from datetime import datetime, timedelta
from threading import RLock
from types import TracebackType
from typing import Final, Literal

import msgspec

from app.domain.text import clean_text, storable_text, utf8_length

MAX_LINE_CHARACTERS: Final = 8192
MAX_LINES: Final = 10_000
MAX_BYTES: Final = 1024 * 1024
"""Of UTF-8, all lines of an attempt together."""
_OVERWRITTEN_EVERY = timedelta(seconds=1)
_DECODED_AT_ONCE = 64 * 1024
_LINE_END = re.compile(r"[\r\n]")

Stream = Literal["log", "stdout", "stderr"]
Level = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]


class LogLine(msgspec.Struct, frozen=True):
    """A line of an attempt's log. `sequence` counts from 1 in each attempt; `message` may span several lines
    of text where a log record did (a traceback)."""

    sequence: int
    time: datetime
    level: Level
    stream: Stream
    message: str


class ExecutionLog:
    """Collects the lines of one attempt, from any thread, until `drain` hands them out.

    Text is cut into lines at `\\n` and `\\r\\n`; as on a terminal, what ends with a bare `\\r` (a progress
    bar) is overwritten by what follows, but shown once a second. A line keeps `MAX_LINE_CHARACTERS`; an
    attempt keeps `limit_lines` and `limit_bytes`, and what is dropped after that is counted in a last line.
    Nothing beyond these limits is held in memory. `clock` returns the time of a line as an aware datetime.
    """

    # One is made for each execution, most of which print nothing: making it takes less than a microsecond.
    __slots__ = (
        "_bytes",
        "_clock",
        "_closed",
        "_dropped",
        "_limit_bytes",
        "_limit_lines",
        "_lines",
        "_lock",
        "_partials",
        "_sequence",
    )

    def __init__(
        self, clock: Callable[[], datetime], *, limit_lines: int = MAX_LINES, limit_bytes: int = MAX_BYTES
    ) -> None:
        self._clock = clock
        self._limit_lines = limit_lines
        self._limit_bytes = limit_bytes
        self._lock = RLock()  # re-entrant: the garbage collector may run somebody's print in our midst
        self._lines: list[LogLine] = []
        self._partials: dict[Stream, _PartialLine] = {}
        self._sequence = 0
        self._bytes = 0
        self._dropped = 0
        self._closed = False

    @property
    def has_lines(self) -> bool:
        """Tell whether `drain` would return something."""
        return bool(self._lines)

    def capturing(self) -> "_Capturing":
        """Return a context manager: what this context (and its copies) logs and prints goes into this log."""
        return _Capturing(self)

    def add_line(self, message: str, *, level: Level, stream: Stream = "log") -> bool:
        """Add one whole line; False once the log is closed."""
        with self._lock:
            if not self._closed:
                self._add(clean_text(message, MAX_LINE_CHARACTERS), level, stream)
            return not self._closed

    def write(self, text: str, *, stream: Stream) -> bool:
        """Add text, of which each whole line becomes a line of the log; False once the log is closed."""
        with self._lock:
            if not self._closed:
                self._write(self._partial(stream), text)
            return not self._closed

    def write_bytes(self, data: bytes | bytearray | memoryview, *, stream: Stream) -> bool:
        """Add UTF-8 text; bytes that are not become U+FFFD."""
        view = memoryview(data).cast("B")
        with self._lock:
            if not self._closed:
                partial = self._partial(stream)
                for start in range(0, len(view), _DECODED_AT_ONCE):
                    self._write(partial, partial.decode(view[start : start + _DECODED_AT_ONCE]))
            return not self._closed

    def drain(self) -> list[LogLine]:
        """Hand out the lines added since the last time, in order."""
        if not self._lines:
            return []
        with self._lock:
            lines, self._lines = self._lines, []
            return lines

    def close(self) -> None:
        """End open lines, say how many lines were dropped, and take no more. `drain` once more after it."""
        with self._lock:
            for partial in self._partials.values():
                self._write(partial, partial.decode(b"", final=True))
                if partial.size:
                    self._end_line(partial)
            if self._dropped and not self._closed:
                self._append(self._dropped_message(), "WARNING", "log")
            self._closed = True
            self._partials.clear()

    def _partial(self, stream: Stream) -> "_PartialLine":
        partial = self._partials.get(stream)
        if partial is None:
            partial = self._partials[stream] = _PartialLine(stream)
        return partial

    def _write(self, partial: "_PartialLine", text: str) -> None:
        position = 0
        while position < len(text):
            if self._dropped:
                self._dropped += partial.skip(text, position)
                return
            if partial.returned and text[position] != "\n":
                self._overwrite(partial)
            match = _LINE_END.search(text, position)
            end = match.start() if match else len(text)
            partial.append(text, position, end)
            position = end + 1
            if match is None:
                return
            partial.returned = text[end] == "\r"
            if not partial.returned:
                self._end_line(partial)

    def _end_line(self, partial: "_PartialLine") -> None:
        self._add(partial.take(), "INFO", partial.stream)

    def _overwrite(self, partial: "_PartialLine") -> None:
        now = self._clock()
        if partial.size and (partial.shown_at is None or now - partial.shown_at >= _OVERWRITTEN_EVERY):
            partial.shown_at = now
            self._end_line(partial)
        partial.clear()

    def _add(self, message: str, level: Level, stream: Stream) -> None:
        self._bytes += utf8_length(message)
        if self._dropped or self._sequence >= self._limit_lines or self._bytes > self._limit_bytes:
            self._dropped += 1
        else:
            self._append(message, level, stream)

    def _append(self, message: str, level: Level, stream: Stream) -> None:
        self._sequence += 1
        self._lines.append(LogLine(self._sequence, self._clock(), level, stream, message))

    def _dropped_message(self) -> str:
        kept = f"{self._limit_lines:,} lines and {self._limit_bytes // 1024:,} KiB"
        return f"{self._dropped:,} more lines were dropped: of one attempt {kept} are kept"


class _PartialLine:
    """The line of a stream that has not ended yet. `size` counts all its characters, also those not kept."""

    __slots__ = ("_decoder", "_kept", "returned", "shown_at", "size", "stream")

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.size = 0
        self.returned = False
        """A carriage return came last: a line feed ends the line, anything else overwrites it."""
        self.shown_at: datetime | None = None
        self._kept: list[str] = []
        self._decoder: codecs.IncrementalDecoder | None = None

    def decode(self, data: bytes | memoryview, *, final: bool = False) -> str:
        """Return the text in `data`; a character that a write has cut in two waits for its other half."""
        if self._decoder is None:
            self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        return self._decoder.decode(bytes(data), final)

    def append(self, text: str, start: int, end: int) -> None:
        """Add `text[start:end]`, as much as fits."""
        room = MAX_LINE_CHARACTERS - self.size
        if room > 0 and end > start:
            self._kept.append(text[start : min(end, start + room)])
        self.size += end - start

    def skip(self, text: str, start: int) -> int:
        """Pass over `text[start:]`, keeping nothing, and return how many lines end in it."""
        ended = text.count("\n", start)
        if ended:
            start = text.rindex("\n") + 1
            self.clear()
        self.size += len(text) - start
        return ended

    def take(self) -> str:
        """Return the line so far, storable and marked where it was cut, and begin the next one."""
        line, size = storable_text("".join(self._kept)), self.size
        self.clear()
        if size <= MAX_LINE_CHARACTERS:
            return line
        return f"{line} … [cut: the first {MAX_LINE_CHARACTERS:,} of {size:,} characters]"

    def clear(self) -> None:
        """Forget the line so far."""
        self._kept.clear()
        self.size = 0
        self.returned = False


_current: ContextVar[ExecutionLog | None] = ContextVar("execution_log", default=None)


def current_log() -> ExecutionLog | None:
    """Return the log into which the present context is captured, if any."""
    return _current.get()


class _Capturing:
    __slots__ = ("_log", "_token")

    def __init__(self, log: ExecutionLog) -> None:
        self._log = log
        self._token: Token[ExecutionLog | None] | None = None

    def __enter__(self) -> None:
        self._token = _current.set(self._log)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            _current.reset(self._token)
