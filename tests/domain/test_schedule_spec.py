"""From what people write to the schedule it means."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from app.domain import cron
from app.domain.errors import InvalidInput
from app.domain.schedule import Immediate, Interval, Once, Recurring, Schedule
from app.domain.schedule_spec import ScheduleSpec, compile_schedule
from app.domain.timezones import Fold, Gap, resolve

NOW = datetime(2025, 6, 1, 12, tzinfo=UTC)
ALIASES = {"America/Cupertino": "America/Los_Angeles"}
JANUARY = datetime(2030, 1, 1, tzinfo=UTC)


def compiled(json: str) -> Schedule:
    return compile_schedule(msgspec.json.decode(json, type=ScheduleSpec), now=NOW, aliases=ALIASES)


@pytest.mark.parametrize(
    ("json", "schedule"),
    [
        ('{"type": "IMMEDIATE"}', Immediate()),
        ('{"type": "IMMEDIATE", "expression": null, "timezone": "Europe/Berlin"}', Immediate()),
        ('{"type": "ONCE", "scheduled_time": "2030-01-01T00:00:00Z"}', Once(scheduled_time=JANUARY)),
        ('{"type": "ONCE", "scheduled_time": 1893456000}', Once(scheduled_time=JANUARY)),
        (
            '{"type": "ONCE", "scheduled_time": "2029-12-31T16:00:00", "timezone": "America/Cupertino"}',
            Once(scheduled_time=JANUARY),
        ),
        (
            '{"type": "ONCE", "scheduled_time": 0.5}',
            Once(scheduled_time=datetime(1970, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC)),
        ),
        (
            '{"type": "CRON", "expression": "0 2 * * TUE", "timezone": "America/Cupertino"}',
            Recurring(expressions=(cron.parse("0 2 * * TUE"),), zone=resolve("America/Cupertino", ALIASES)),
        ),
        (
            '{"type": "RECURRING", "expression": "@daily", "gap": "skip", "fold": "both",'
            ' "starts_at": "2030-01-01T00:00", "ends_at": 1893456000}',
            Recurring(
                expressions=(cron.parse("@daily"),),
                zone=resolve("UTC"),
                gap=Gap.SKIP,
                fold=Fold.BOTH,
                starts_at=JANUARY,
                ends_at=JANUARY,
            ),
        ),
        ('{"type": "INTERVAL", "every": "PT90S"}', Interval(every_seconds=90, anchor=NOW)),
        ('{"type": "INTERVAL", "every": 1}', Interval(every_seconds=1, anchor=NOW)),
        (
            '{"type": "INTERVAL", "every": 1.5, "starts_at": "2030-01-01T00:00:00Z", "ends_at": 1893456001}',
            Interval(every_seconds=1.5, anchor=JANUARY, ends_at=JANUARY + timedelta(seconds=1)),
        ),
    ],
)
def test_compiles_what_fits_the_type(json: str, schedule: Schedule) -> None:
    assert compiled(json) == schedule


def test_an_interval_counts_from_the_creation_of_its_job() -> None:
    spec = msgspec.json.decode('{"type": "INTERVAL", "every": 60}', type=ScheduleSpec)
    schedule = compile_schedule(spec, now=NOW, aliases={}, created_at=JANUARY)

    assert schedule == Interval(every_seconds=60, anchor=JANUARY)


def test_cron_is_read_back_as_recurring() -> None:
    spec = msgspec.json.decode('{"type": "CRON", "expression": "@daily"}', type=ScheduleSpec)

    assert msgspec.to_builtins(spec)["type"] == "RECURRING"
    assert msgspec.json.decode(msgspec.json.encode(spec), type=ScheduleSpec) == spec


@pytest.mark.parametrize(
    ("json", "code", "pointers", "detail"),
    [
        (
            '{"type": "ONCE"}',
            "invalid_schedule",
            ["/schedule/scheduled_time"],
            "type ONCE needs scheduled_time",
        ),
        ('{"type": "CRON"}', "invalid_schedule", ["/schedule/expression"], "type RECURRING needs expression"),
        ('{"type": "INTERVAL"}', "invalid_schedule", ["/schedule/every"], "type INTERVAL needs every"),
        (
            '{"type": "IMMEDIATE", "expression": "@daily", "ends_at": 1}',
            "invalid_schedule",
            ["/schedule/ends_at", "/schedule/expression"],
            "ends_at, expression does not fit type IMMEDIATE, which takes none of these",
        ),
        (
            '{"type": "RECURRING", "expression": "@daily", "every": 60}',
            "invalid_schedule",
            ["/schedule/every"],
            "every does not fit type RECURRING, which takes ends_at, expression, starts_at",
        ),
        (
            '{"type": "ONCE", "scheduled_time": 1, "starts_at": 1}',
            "invalid_schedule",
            ["/schedule/starts_at"],
            "starts_at does not fit type ONCE, which takes scheduled_time",
        ),
        (
            '{"type": "RECURRING", "expression": "0 25 * * *"}',
            "invalid_cron",
            ["/schedule/expression"],
            "field 2 (hour): 25 is not in 0-23",
        ),
        ('{"type": "RECURRING", "expression": ""}', "invalid_cron", ["/schedule/expression"], "is empty"),
        (
            '{"type": "RECURRING", "expression": "0 0 30 2 *"}',
            "never_fires",
            ["/schedule/expression"],
            "never fires",
        ),
        (
            '{"type": "IMMEDIATE", "timezone": "america/new_york"}',
            "invalid_timezone",
            ["/schedule/timezone"],
            "did you mean America/New_York?",
        ),
        (
            '{"type": "ONCE", "scheduled_time": "2025-03-09T02:30", "timezone": "US/Eastern", "gap": "skip"}',
            "invalid_schedule",
            ["/schedule/scheduled_time"],
            "does not exist in US/Eastern",
        ),
        ('{"type": "INTERVAL", "every": "P1M"}', "invalid_schedule", ["/schedule/every"], "months and years"),
        (
            '{"type": "INTERVAL", "every": 0.999}',
            "invalid_schedule",
            ["/schedule/every"],
            "from 1 second to 10 years",
        ),
        (
            '{"type": "INTERVAL", "every": "P3654D"}',
            "invalid_schedule",
            ["/schedule/every"],
            "from 1 second to 10",
        ),
        (
            '{"type": "INTERVAL", "every": 60, "starts_at": "soon"}',
            "invalid_schedule",
            ["/schedule/starts_at"],
            "'soon' is not a time",
        ),
        (
            '{"type": "RECURRING", "expression": "@daily", "starts_at": 1893456001, "ends_at": 1893456000}',
            "invalid_schedule",
            ["/schedule/ends_at"],
            "ends_at lies before starts_at",
        ),
    ],
)
def test_refusals_point_at_the_field(json: str, code: str, pointers: list[str], detail: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        compiled(json)

    assert refusal.value.code == code
    assert [error.pointer for error in refusal.value.errors] == pointers
    assert detail in refusal.value.detail


@pytest.mark.parametrize(
    "json",
    [
        '{"type": "WEEKLY"}',
        '{"type": "RECURRING", "expression": "@daily", "cron": "@daily"}',
        '{"type": "RECURRING", "expression": "@daily", "gap": "sometimes"}',
        '{"type": "INTERVAL", "every": true}',
        '{"expression": "@daily"}',
    ],
)
def test_unknown_fields_and_values_are_refused_when_decoded(json: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(json, type=ScheduleSpec)
