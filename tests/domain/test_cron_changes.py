"""Every change of every clock from 2024 to 2028, and what becomes of a time of day inside it."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

import pytest

from app.domain import cron
from app.domain.schedule import Recurring, occurrences
from app.domain.timezones import Fold, Gap, Zone, resolve, zone_names

DAY, SECOND = timedelta(days=1), timedelta(seconds=1)


class Change(NamedTuple):
    """A change of a zone's offset from UTC, at `instant`."""

    zone: Zone
    instant: datetime
    before: timedelta
    after: timedelta

    @property
    def is_gap(self) -> bool:
        return self.after > self.before

    @property
    def edges(self) -> tuple[datetime, datetime]:
        """Return the wall times between which the clock jumps over, or shows again, what lies there."""
        low, high = sorted(
            (self.instant + offset).replace(tzinfo=None) for offset in (self.before, self.after)
        )
        return low, high

    def at(self, wall: datetime, offset: timedelta) -> datetime:
        return (wall - offset).replace(tzinfo=UTC)


def changes_of(zone: Zone) -> Iterator[Change]:
    """Look at the offset each fifth day and halve: that misses none, as no zone changes twice within six."""

    def offset(instant: datetime) -> timedelta:
        return instant.astimezone(zone.info).utcoffset() or timedelta()

    looks = (datetime(2024, 1, 1, tzinfo=UTC) + 5 * DAY * number for number in range(5 * 366 // 5 + 1))
    for before, after in pairwise(looks):
        low, high = before, after
        while offset(before) != offset(after) and high - low > SECOND:
            middle = low + (high - low) // 2 // SECOND * SECOND
            low, high = (middle, high) if offset(middle) == offset(before) else (low, middle)
        if offset(before) != offset(after):
            yield Change(zone, high, offset(before), offset(after))


@pytest.fixture(scope="module")
def changes() -> list[Change]:
    zones = sorted({resolve(name).target for name in zone_names()})
    found = [change for name in zones for change in changes_of(resolve(name))]

    assert len(found) > 800
    return found


def test_wall_times_at_the_edges_are_one_instant(changes: list[Change]) -> None:
    for change in changes:
        low, high = change.edges

        assert change.zone.instants(low - SECOND, fold=Fold.BOTH) == (change.at(low - SECOND, change.before),)
        assert change.zone.instants(high, fold=Fold.BOTH) == (change.at(high, change.after),)


def test_wall_times_between_the_edges_follow_the_policies(changes: list[Change]) -> None:
    for change in changes:
        low, high = change.edges
        for inside in (low, low + (high - low) / 2, high - SECOND):
            passes = change.at(inside, change.before), change.at(inside, change.after)

            assert change.zone.instants(inside) == ((change.instant,) if change.is_gap else passes[:1])
            assert change.zone.instants(inside, gap=Gap.SKIP, fold=Fold.BOTH) == (
                () if change.is_gap else passes
            )


def test_a_daily_job_runs_once_a_day_around_the_change(changes: list[Change]) -> None:
    for change in changes:
        low, high = change.edges
        inside = (low + (high - low) / 2).replace(second=0)
        schedule = Recurring(
            expressions=(cron.parse(f"{inside.minute} {inside.hour} * * *"),), zone=change.zone
        )
        window = (change.instant - 1.5 * DAY, change.instant + 1.5 * DAY)

        assert occurrences(schedule, after=window[0], until=window[1], limit=9) == [
            change.at(inside - DAY, change.before),
            change.instant if change.is_gap else change.at(inside, change.before),
            change.at(inside + DAY, change.after),
        ]
