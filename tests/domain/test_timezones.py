"""Zones and the conversion of wall time into instants."""

import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.errors import InvalidTimezone
from app.domain.timezones import Fold, Gap, Zone, nearest_names, resolve, tzdata_version, zone_names

ALIASES = {"America/Cupertino": "America/Los_Angeles", "Europe/Berlin": "Asia/Tokyo", "HQ": "Mars/Olympus"}
ZONES = sorted({resolve(name).target for name in zone_names()})


def wall(text: str) -> datetime:
    return datetime.fromisoformat(text)


def shown(instants: tuple[datetime, ...]) -> list[str]:
    return [instant.isoformat().replace("+00:00", "Z") for instant in instants]


@pytest.mark.parametrize(
    ("name", "resolved", "target"),
    [
        ("Europe/Berlin", "Europe/Berlin", "Europe/Berlin"),
        ("UTC", "UTC", "Etc/UTC"),
        ("US/Pacific", "US/Pacific", "America/Los_Angeles"),
        ("Europe/Amsterdam", "Europe/Amsterdam", "Europe/Brussels"),
        ("America/Argentina/Ushuaia", "America/Argentina/Ushuaia", "America/Argentina/Ushuaia"),
        ("America/Cupertino", "America/Los_Angeles", "America/Los_Angeles"),
    ],
)
def test_resolves_names_links_and_aliases(name: str, resolved: str, target: str) -> None:
    zone = resolve(name, ALIASES)

    assert (zone.requested, zone.resolved, zone.target, zone.info.key) == (name, resolved, target, resolved)


def test_an_alias_cannot_change_what_an_iana_name_means() -> None:
    assert resolve("Europe/Berlin", ALIASES).resolved == "Europe/Berlin"


def test_an_alias_of_no_zone_is_refused() -> None:
    with pytest.raises(InvalidTimezone, match="'Mars/Olympus' is not an IANA time zone"):
        resolve("HQ", ALIASES)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("america/new_york", "did you mean America/New_York?"),
        ("EUROPE/BERLIN", "did you mean Europe/Berlin?"),
        ("New York", "did you mean America/New_York?"),
        ("Europe/Berln", "did you mean Europe/Berlin or "),
        ("posix/Europe/Berlin", "did you mean Europe/Berlin?"),
        ("right/Europe/Berlin", "did you mean Europe/Berlin?"),
        ("UTC+3", "did you mean Etc/GMT-3?"),
        ("GMT-05:00", "did you mean Etc/GMT+5?"),
        ("UTC+99", "did you mean UTC?"),
        ("UTC\0", "did you mean UTC?"),
        ("UTC ", "did you mean UTC"),
        ("US", "did you mean US/Alaska or US/Aleutian or US/Arizona?"),
        ("America/Cupertino", "did you mean America/"),
        ("", "use a name such as Europe/Berlin or UTC"),
        ("leapseconds", "use a name such as Europe/Berlin or UTC"),
        ("tzdata.zi", "use a name such as Europe/Berlin or UTC"),
        ("localtime", "use a name such as Europe/Berlin or UTC"),
        ("Factory", "use a name such as Europe/Berlin or UTC"),
        ("../../etc/passwd", "use a name such as Europe/Berlin or UTC"),
        ("/usr/share/zoneinfo/Europe/Berlin", ""),
        ("__init__.py", ""),
        ("Europe", "did you mean Europe/Amsterdam"),
        ("Europe/", ""),
        ("zone.tab", ""),
        ("\ud800", ""),
        ("Zürich" * 10_000, ""),
    ],
)
def test_refuses_other_names_with_the_nearest_real_ones(name: str, meant: str) -> None:
    with pytest.raises(InvalidTimezone) as refusal:
        resolve(name)

    assert refusal.value.code == "invalid_timezone"
    assert meant in refusal.value.detail
    assert refusal.value.detail.isascii()
    assert refusal.value.detail.isprintable()
    assert len(refusal.value.detail) < 500


@given(st.text(max_size=20))
@settings(deadline=None)
def test_nearest_names_are_real(name: str) -> None:
    assert set(nearest_names(name)) <= zone_names()


def test_every_listed_zone_loads() -> None:
    assert len(ZONES) > 300
    assert all(resolve(name).resolved == name for name in zone_names())


def test_the_version_is_that_of_the_installed_package() -> None:
    year, letter = version("tzdata").split(".")[:2]

    assert tzdata_version() == f"{year}{chr(ord('a') - 1 + int(letter))}"


@pytest.fixture
def host_says_troll_is_on_utc(tmp_path: Path) -> Iterator[None]:
    zone = tmp_path / "Antarctica" / "Troll"
    zone.parent.mkdir()
    # RFC 9636, version 1: six counters, of which one type of 6 bytes and 4 characters are not zero
    counters = b"".join(count.to_bytes(4, "big") for count in (0, 0, 0, 0, 1, 4))
    zone.write_bytes(b"TZif" + bytes(16) + counters + bytes(6) + b"UTC\0")
    before = zoneinfo.TZPATH
    zoneinfo.reset_tzpath(to=[str(tmp_path)])
    yield
    zoneinfo.reset_tzpath(to=before)
    zoneinfo.ZoneInfo.clear_cache(only_keys=["Antarctica/Troll"])


@pytest.mark.usefixtures("host_says_troll_is_on_utc")
def test_the_files_of_the_host_do_not_count() -> None:
    midsummer = datetime(2025, 7, 1, tzinfo=UTC)

    assert midsummer.astimezone(zoneinfo.ZoneInfo("Antarctica/Troll")).hour == 0
    assert resolve("Antarctica/Troll").wall(midsummer).hour == 2


@pytest.mark.parametrize(
    ("name", "time", "end_of_gap"),
    [
        ("America/New_York", "2025-03-09T02:00", "2025-03-09T07:00:00Z"),
        ("America/New_York", "2025-03-09T02:59:59.999999", "2025-03-09T07:00:00Z"),
        ("Australia/Lord_Howe", "2025-10-05T02:15", "2025-10-04T15:30:00Z"),
        ("America/Nuuk", "2024-03-30T23:30", "2024-03-31T01:00:00Z"),
        ("Pacific/Chatham", "2025-09-28T03:00", "2025-09-27T14:00:00Z"),
        ("Pacific/Apia", "2011-12-30T09:00", "2011-12-30T10:00:00Z"),
        ("Europe/Dublin", "2025-03-30T01:30", "2025-03-30T01:00:00Z"),
    ],
)
def test_a_wall_time_in_a_gap_becomes_the_end_of_the_gap_or_nothing(
    name: str, time: str, end_of_gap: str
) -> None:
    zone = resolve(name)

    assert shown(zone.instants(wall(time))) == [end_of_gap]
    assert zone.instants(wall(time), gap=Gap.SKIP) == ()


@pytest.mark.parametrize(
    ("name", "time", "first", "second"),
    [
        ("America/New_York", "2025-11-02T01:30", "2025-11-02T05:30:00Z", "2025-11-02T06:30:00Z"),
        ("Australia/Lord_Howe", "2025-04-06T01:45", "2025-04-05T14:45:00Z", "2025-04-05T15:15:00Z"),
        ("America/Sao_Paulo", "2018-02-17T23:30", "2018-02-18T01:30:00Z", "2018-02-18T02:30:00Z"),
        ("Europe/Volgograd", "2020-12-27T01:30", "2020-12-26T21:30:00Z", "2020-12-26T22:30:00Z"),
    ],
)
def test_a_wall_time_in_a_fold_is_the_first_the_second_or_both(
    name: str, time: str, first: str, second: str
) -> None:
    zone = resolve(name)

    assert shown(zone.instants(wall(time))) == [first]
    assert shown(zone.instants(wall(time), fold=Fold.SECOND)) == [second]
    assert shown(zone.instants(wall(time), fold=Fold.BOTH)) == [first, second]


@given(
    zone=st.sampled_from(ZONES).map(resolve),
    instant=st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)
@settings(max_examples=300, deadline=None)
def test_what_the_wall_shows_at_an_instant_stands_for_it(zone: Zone, instant: datetime) -> None:
    shows = zone.wall(instant)

    assert instant in zone.instants(shows, fold=Fold.BOTH)
    assert zone.instants(shows, fold=Fold.SECOND if shows.fold else Fold.FIRST) == (instant,)
