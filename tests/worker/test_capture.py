"""What handlers log and print, captured for their execution and for nobody else."""

import asyncio
import contextvars
import io
import logging
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.worker.capture import MAX_LINE_CHARACTERS, MAX_LINES, ExecutionLog, LogLine
from app.worker.output import OutputCapture

START = datetime(2030, 1, 1, tzinfo=UTC)


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def log() -> ExecutionLog:
    return ExecutionLog(Clock())


@contextmanager
def installed() -> Iterator[None]:
    """Install the capture. Not a fixture: pytest changes `sys.stdout` between a fixture and its test."""
    capture = OutputCapture()
    capture.install()
    try:
        yield
    finally:
        capture.remove()


def messages(log: ExecutionLog) -> list[str]:
    """Close the log and return what it held."""
    log.close()
    return [line.message for line in log.drain()]


def written(*pieces: str | bytes, **options: Any) -> list[str]:
    log = ExecutionLog(Clock(), **options)
    for piece in pieces:
        if isinstance(piece, str):
            log.write(piece, stream="stdout")
        else:
            log.write_bytes(piece, stream="stdout")
    return messages(log)


def test_lines_carry_sequence_time_level_and_stream() -> None:
    clock = Clock()
    log = ExecutionLog(clock)
    log.write("one\n", stream="stdout")
    clock.now += timedelta(seconds=1)
    log.write("two\n", stream="stderr")
    log.add_line("three\nin two lines", level="ERROR")
    assert log.drain() == [
        LogLine(1, START, "INFO", "stdout", "one"),
        LogLine(2, START + timedelta(seconds=1), "INFO", "stderr", "two"),
        LogLine(3, START + timedelta(seconds=1), "ERROR", "log", "three\nin two lines"),
    ]


def test_draining_hands_out_each_line_once_and_the_sequence_goes_on(log: ExecutionLog) -> None:
    assert (log.has_lines, log.drain()) == (False, [])
    log.write("a\nb\nopen", stream="stdout")
    assert (log.has_lines, [line.sequence for line in log.drain()]) == (True, [1, 2])
    assert (log.has_lines, log.drain()) == (False, [])
    log.write(" end\n", stream="stdout")
    assert [(line.sequence, line.message) for line in log.drain()] == [(3, "open end")]


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        ([], []),
        (["a\nb\n"], ["a", "b"]),
        (["a", "b", "\n", "c"], ["ab", "c"]),
        (["\n\n"], ["", ""]),
        (["a\r\nb\r", "\n"], ["a", "b"]),
        (["a\0b\n", "\ud800\n"], ["a\u2400b", "\ufffd"]),
        ([b"bytes\n", b"\xff\n"], ["bytes", "\ufffd"]),
        (["é".encode()[:1], "é".encode()[1:], "\n"], ["é"]),
        (["é".encode()[:1]], ["\ufffd"]),
        (["text ", b"and bytes\n"], ["text and bytes"]),
        (["tab\tand \x1b[31mcolour\x1b[0m\n"], ["tab\tand \x1b[31mcolour\x1b[0m"]),
    ],
)
def test_text_becomes_lines(pieces: list[str | bytes], lines: list[str]) -> None:
    assert written(*pieces) == lines


def test_streams_keep_their_unfinished_lines_apart(log: ExecutionLog) -> None:
    log.write("out", stream="stdout")
    log.write("err", stream="stderr")
    log.write("put\n", stream="stdout")
    assert messages(log) == ["output", "err"]


@pytest.mark.parametrize("marks", ["\r{}%", "{}%\r"])
def test_a_progress_bar_is_shown_once_a_second_and_at_its_end(marks: str) -> None:
    clock = Clock()
    log = ExecutionLog(clock)
    for percent in range(101):
        log.write(marks.format(percent), stream="stderr")
        clock.now += timedelta(seconds=0.1)
    log.write("\n", stream="stderr")
    shown = [line.message for line in log.drain()]
    assert shown[0] == "0%"
    assert shown[-1] == "100%"
    assert 10 <= len(shown) <= 12


def test_a_hundred_thousand_carriage_returns_at_once_are_one_line_and_the_last() -> None:
    assert written("".join(f"\r{n}" for n in range(100_000)), "\rdone\n") == ["0", "done"]
    assert written("\r" * 100_000) == []


def test_a_line_is_cut_with_a_mark() -> None:
    assert written("x" * MAX_LINE_CHARACTERS + "\n") == ["x" * MAX_LINE_CHARACTERS]
    kept = "x" * MAX_LINE_CHARACTERS
    for pieces in (["x" * 10_000 + "\n"], ["x" * 5_000] * 2, ["x"] * 10_000):
        assert written(*pieces, "") == [f"{kept} … [cut: the first 8,192 of 10,000 characters]"]


def test_a_hundred_megabytes_without_a_newline_are_not_held() -> None:
    log = ExecutionLog(Clock())
    piece, octets = "x" * 1_000_000, b"y" * 1_000_000
    tracemalloc.start()
    try:
        for _ in range(50):
            log.write(piece, stream="stdout")
            log.write_bytes(octets, stream="stdout")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000
    [line] = messages(log)
    assert line.endswith("[cut: the first 8,192 of 100,000,000 characters]")


@pytest.mark.parametrize("at_once", [True, False])
def test_beyond_ten_thousand_lines_the_rest_is_counted(at_once: bool) -> None:  # noqa: FBT001 - a test's parameter
    text = "".join(f"{n}\n" for n in range(25_000)) + "open"
    lines = written(text) if at_once else written(*text.splitlines(keepends=True))
    assert len(lines) == MAX_LINES + 1
    assert lines[MAX_LINES - 1] == "9999"
    assert lines[-1] == "15,001 more lines were dropped: of one attempt 10,000 lines and 1,024 KiB are kept"


def test_the_count_includes_log_records_and_bytes() -> None:
    log = ExecutionLog(Clock(), limit_lines=2)
    log.write("1\n2\n3\n", stream="stdout")
    log.add_line("4", level="ERROR")
    log.write_bytes(b"5\n6\n7", stream="stderr")
    assert messages(log)[2:] == ["5 more lines were dropped: of one attempt 2 lines and 1,024 KiB are kept"]


def test_a_megabyte_is_kept() -> None:
    lines = written(*["é" * 511 + "\n"] * 2000)
    assert sum(len(line.encode()) for line in lines[:-1]) <= 1024 * 1024
    assert len(lines) == 1024 * 1024 // 1022 + 1
    assert lines[-1].startswith(f"{2000 - len(lines) + 1:,} more lines")


def test_exactly_the_limit_drops_nothing() -> None:
    assert written("1\n2\n", limit_lines=2) == ["1", "2"]


def test_a_closed_log_takes_no_more_and_says_so(log: ExecutionLog) -> None:
    log.write("before", stream="stdout")
    assert messages(log) == ["before"]
    assert not log.write("after\n", stream="stdout")
    assert not log.write_bytes(b"after\n", stream="stdout")
    assert not log.add_line("after", level="INFO")
    assert messages(log) == []


@settings(deadline=None)
@given(st.lists(st.text(st.sampled_from("ab\n\0é\ud800"), max_size=20)))
def test_how_text_is_split_into_writes_does_not_matter(pieces: list[str]) -> None:
    text = "".join(pieces)
    expected = text.replace("\0", "\u2400").replace("\ud800", "\ufffd").split("\n")
    assert written(*pieces) == written(text) == (expected if expected[-1] else expected[:-1])


def test_writers_in_many_threads_lose_nothing(log: ExecutionLog) -> None:
    def write(name: int) -> None:
        for n in range(500):
            log.add_line(f"{name}:{n}", level="INFO")

    threads = [threading.Thread(target=write, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    drained = log.drain()
    for thread in threads:
        thread.join()
    drained += log.drain()
    assert [line.sequence for line in drained] == list(range(1, 4001))
    assert len({line.message for line in drained}) == 4000


def test_prints_and_log_records_in_its_context_go_into_the_log(
    log: ExecutionLog, caplog: pytest.LogCaptureFixture
) -> None:
    with installed(), log.capturing():
        print("printed", 1)
        print("to stderr", file=sys.stderr)
        sys.stdout.write("written\n")
        sys.stdout.writelines(["line\n", "another\n"])
        sys.stdout.buffer.write(b"bytes \xff\n")
        sys.stderr.flush()
        logging.getLogger("some.library").info("hello %s", "world")
        logging.getLogger("some.library").debug("too quiet")
        logging.getLogger("onthedot.task").warning("careful")
    lines = log.drain()
    assert [(line.level, line.stream, line.message) for line in lines] == [
        ("INFO", "stdout", "printed 1"),
        ("INFO", "stderr", "to stderr"),
        ("INFO", "stdout", "written"),
        ("INFO", "stdout", "line"),
        ("INFO", "stdout", "another"),
        ("INFO", "stdout", "bytes \ufffd"),
        ("INFO", "log", "hello world"),
        ("WARNING", "log", "careful"),
    ]
    assert "careful" in caplog.text  # the process's own log has it too


def test_outside_of_an_execution_everything_goes_where_it_went(
    log: ExecutionLog, capsys: pytest.CaptureFixture[str]
) -> None:
    with installed():
        print("plain")
        print("plain error", file=sys.stderr)
        sys.stdout.buffer.write(b"bytes\n")
        sys.stdout.buffer.flush()
        with log.capturing():
            print("captured")
        log.close()
        with log.capturing():
            print("late")
    out, err = capsys.readouterr()
    assert out == "plain\nbytes\nlate\n"
    assert err == "plain error\n"


def test_removing_the_capture_restores_streams_and_logging() -> None:
    root = logging.getLogger()
    quiet = logging.StreamHandler(io.StringIO())
    root.addHandler(quiet)
    before = (sys.stdout, sys.stderr, root.level, quiet.level, list(root.handlers))
    root.setLevel(logging.ERROR)
    capture = OutputCapture()
    try:
        capture.install()
        assert logging.getLogger("some.library").isEnabledFor(logging.INFO)
        logging.getLogger("some.library").warning("not for the process's log")
        assert quiet.stream.getvalue() == ""
        capture.remove()
        capture.remove()
        assert root.level == logging.ERROR
        root.setLevel(before[2])
        assert (sys.stdout, sys.stderr, root.level, quiet.level, list(root.handlers)) == before
    finally:
        root.setLevel(before[2])
        root.removeHandler(quiet)


async def test_executions_side_by_side_do_not_mix() -> None:
    together = asyncio.Barrier(20)

    async def handler(log: ExecutionLog, name: int) -> None:
        with log.capturing():
            for n in range(3):
                print(name, end=" ")
                await together.wait()
                print(n)
            await asyncio.create_task(say(f"subtask of {name}"))

    async def say(text: str) -> None:
        print(text)

    logs = [ExecutionLog(Clock()) for _ in range(20)]
    with installed():
        await asyncio.gather(*(handler(log, name) for name, log in enumerate(logs)))
    for name, log in enumerate(logs):
        assert messages(log) == [f"{name} 0", f"{name} 1", f"{name} 2", f"subtask of {name}"]


async def test_a_handler_in_a_thread_is_captured_by_its_copied_context(log: ExecutionLog) -> None:
    def handler() -> None:
        print("from a thread")
        logging.getLogger("lib").error("also")

    with log.capturing():
        context = contextvars.copy_context()
    with installed():
        await asyncio.get_running_loop().run_in_executor(None, context.run, handler)
    assert messages(log) == ["from a thread", "also"]


def test_a_traceback_is_part_of_its_record_and_its_end_is_kept(log: ExecutionLog) -> None:
    def fail() -> None:
        raise ValueError("x" * 20_000 + " the reason")

    with installed(), log.capturing():
        try:
            fail()
        except ValueError:
            logging.getLogger("lib").exception("failed")
    [line] = log.drain()
    assert line.message.startswith("failed\nTraceback (most recent call last):")
    assert line.message.endswith("the reason")
    assert len(line.message) == MAX_LINE_CHARACTERS


@pytest.mark.parametrize(
    ("number", "level"), [(20, "INFO"), (25, "INFO"), (35, "WARNING"), (40, "ERROR"), (99, "CRITICAL")]
)
def test_levels_of_a_programs_own_become_the_standard_one_below(
    log: ExecutionLog, number: int, level: str
) -> None:
    with installed(), log.capturing():
        logging.getLogger("lib").log(number, "message")
    assert [line.level for line in log.drain()] == [level]


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_records_that_cannot_be_formatted_are_kept_as_they_are(
    log: ExecutionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # pytest's own raise on such records
    with installed(), log.capturing():
        logging.getLogger("lib").info("%d of %s", "seven", "nine")
        logging.getLogger("lib").info("%s", Unprintable())
        logging.getLogger("lib").info(Unprintable())
        logging.getLogger("lib").info("NUL \0 and %s", "\ud800")
    broken = "[the arguments of this record cannot be formatted]"
    assert messages(log) == [
        f"%d of %s {broken}",
        f"%s {broken}",
        f"Unprintable {broken}",
        "NUL \u2400 and \ufffd",
    ]


def test_the_streams_behave_like_files(log: ExecutionLog) -> None:
    with installed(), log.capturing():
        assert sys.stdout.encoding.lower().replace("-", "") == "utf8"
        assert sys.stdout.writable()
        assert sys.stdout.buffer.writable()
        assert not sys.stdout.isatty()
        assert sys.stdout.write("four") == 4
        assert sys.stdout.buffer.write(bytearray(b"five\n")) == 5
        with pytest.raises(TypeError):
            sys.stdout.write(b"bytes")  # type: ignore[arg-type]
        sys.stdout.close()
        sys.stdout.buffer.close()
        print("still open")
    print("and outside")
    assert messages(log) == ["fourfive", "still open"]
