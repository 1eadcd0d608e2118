"""Which instants of whom an hour has room for, and what is said where it has none."""

from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

from app.domain.hourly_quota import LEAD, Count, UserHour, admit, exceeded, hour_of
from app.domain.planning import PassedOver, Plan
from app.domain.statuses import Disposition

NOW = datetime(2026, 3, 29, 11, 30, tzinfo=UTC)
HOUR, NEXT = datetime(2026, 3, 29, 11, tzinfo=UTC), datetime(2026, 3, 29, 12, tzinfo=UTC)
ONE, TWO, FREE = UUID(int=1), UUID(int=2), UUID(int=3)
OWNERS = {ONE: "ada", TWO: "ada"}
UNTIL = NOW + timedelta(hours=2)


def plan(*minutes: float, passed: list[PassedOver] | None = None) -> Plan:
    """Return a plan of instants so many minutes from now."""
    instants = [NOW + timedelta(minutes=minute) for minute in minutes]
    return Plan(instants, passed or [], UNTIL, NOW + timedelta(minutes=45))


def counts(this: int, following: int = 100) -> dict[UserHour, Count]:
    """Return counters with so much room."""
    return {UserHour("ada", HOUR): Count(0, this), UserHour("ada", NEXT): Count(0, following)}


def test_an_hour_begins_at_full_hours_of_utc_whatever_the_zone() -> None:
    kathmandu = timezone(timedelta(hours=5, minutes=45))

    assert hour_of(datetime(2026, 1, 1, 12, 50, tzinfo=kathmandu)) == datetime(2026, 1, 1, 7, tzinfo=UTC)


def test_who_is_refused_hears_after_how_many_whole_seconds_the_next_hour_begins() -> None:
    for now, seconds in (
        (NOW, 1800),
        (NOW + timedelta(microseconds=1), 1800),
        (NEXT - timedelta(microseconds=1), 1),
        (NEXT + timedelta(seconds=1), 1),
    ):
        error = exceeded("ada", quota=5, hour=HOUR, now=now)
        assert error.retry_after_seconds == seconds
    assert "ada may create 5 executions an hour" in error.detail
    assert "2026-03-29T12:00Z" in error.detail


def test_the_earliest_of_all_jobs_of_a_user_get_the_room() -> None:
    plans = [(ONE, plan(5, 15, 25, 35)), (TWO, plan(10, 20)), (FREE, plan(1, 2))]

    found = admit(plans, owners=OWNERS, counts=counts(3), now=NOW)

    one, two, free = [p for _, p in found.plans]
    assert one.instants == plan(5, 15).instants
    assert two.instants == plan(10).instants
    assert free == plan(1, 2)
    assert found.created == {UserHour("ada", HOUR): 3}
    # it is looked at again before the first instant without room comes, and nothing before that is planned anew
    assert one.materialized_until == NOW + timedelta(minutes=25) - timedelta.resolution
    assert one.materialize_at == NOW + timedelta(minutes=25) - LEAD
    assert one.passed_over == []


def test_what_comes_within_a_moment_is_passed_over_and_the_next_hour_has_room_of_its_own() -> None:
    missed = PassedOver(NOW - LEAD, NOW - LEAD, 1, Disposition.COALESCED, "late")
    soon = plan(0, 0.01, 0.02, 30, 31, passed=[missed])

    found = admit([(ONE, soon)], owners=OWNERS, counts=counts(1, 1), now=NOW)

    [(_, cut)] = found.plans
    assert cut.instants == plan(0, 30).instants
    assert cut.materialized_until == plan(31).instants[0] - timedelta.resolution
    kept, deferred = cut.passed_over
    assert kept == missed
    assert deferred == PassedOver(
        soon.instants[1],
        soon.instants[2],
        2,
        Disposition.DEFERRED_QUOTA,
        "ada may have 1 executions an hour (max_jobs_per_hour); the hour from 2026-03-29T11:00Z had as many",
    )


def test_where_the_counters_cannot_be_known_nothing_is_decided() -> None:
    found = admit([(ONE, plan(-1, 5))], owners=OWNERS, counts=None, now=NOW)

    [(_, cut)] = found.plans
    assert (cut.instants, cut.passed_over) == ([], [])
    assert cut.materialized_until == plan(-1).instants[0] - timedelta.resolution
    assert cut.materialize_at == NOW + timedelta(seconds=1)
