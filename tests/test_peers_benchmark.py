"""What `make bench-peers` says of what it has found."""

import re
from pathlib import Path

import pytest

from benchmarks.peers.figures import Figure, Missing, table
from benchmarks.peers.install import NotRun, command
from benchmarks.peers.systems import PEERS


def _figure(system: str, value: float, unit: str, *, bar: float | None = None) -> Figure:
    return Figure(row="drain", system=system, what="drain", value=value, unit=unit, bar=bar)


@pytest.mark.parametrize(("unit", "ratio"), [("/s", 2.0), ("ms", 0.5), ("µs/job", 0.5)])
def test_a_ratio_above_one_is_onthedot_ahead(unit: str, ratio: float) -> None:
    ours = {"drain": _figure("onthedot", 200.0, unit)}

    assert _figure("pg-boss", 100.0, unit).beside(ours).ratio == ratio


def test_a_missed_bar_is_printed_as_missed() -> None:
    ours = {"drain": _figure("onthedot", 200.0, "/s")}
    found = [_figure("oban", value, "/s", bar=2.0).beside(ours) for value in (100.0, 101.0)]

    met, missed = table(list(found)).splitlines()[-2:]

    assert met.endswith("| ≥ 2: met |")
    assert missed.endswith("| ≥ 2: missed |")


def test_who_is_not_run_is_a_line_that_says_why() -> None:
    missing = Missing("drain", "celery", "there is no redis-server")

    assert table([missing]).endswith("| drain | celery | not run: there is no redis-server | | |")


def test_what_cannot_be_installed_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    [boss] = [system for system in PEERS if system.name == "pg-boss"]

    with pytest.raises(NotRun, match="there is no npm"):
        command(boss, tmp_path / "cache")


def test_only_exact_versions_are_installed() -> None:
    pins = [pin for system in PEERS for pin in system.pins]

    assert [pin for pin in pins if not re.fullmatch(r".+(==|@)\d+(\.\d+)+", pin)] == []
