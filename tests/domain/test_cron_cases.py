"""Expressions and zones that went wrong in the field, with the instants that are right.

The cases come from public reports; each names its source and why its answer is the right one.
"""

from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from app.domain import cron
from app.domain.errors import InvalidInput
from app.domain.schedule import Recurring, next_occurrences, occurrences
from app.domain.timezones import resolve

DECADES = timedelta(days=30 * 366)


class Reading(msgspec.Struct):
    """Another respectable reading of a case, and the policy it follows."""

    policy: str
    expect: list[str] | str


class Case(msgspec.Struct):
    """An expression in a zone, and the first five instants after `base`, or `invalid`."""

    id: str
    expr: str
    tz: str
    base: datetime
    expect: list[str] | str
    why: str
    source: str
    strict: bool
    alt: list[Reading] = []


CASES = msgspec.json.decode(
    (Path(__file__).parent / "cases" / "cron_cases.json").read_bytes(), type=list[Case]
)
RANGES_WRAP = {"C41", "C43", "C44"}
"""Here we take the documented alternative. `expect` is our reading everywhere else."""


def first_five(case: Case) -> list[str] | str:
    """Return what the case asks for, by both ways of asking."""
    try:
        schedule = Recurring(expressions=(cron.parse(case.expr),), zone=resolve(case.tz))
    except InvalidInput:
        return "invalid"
    instants = occurrences(schedule, after=case.base, until=case.base + DECADES, limit=5)
    assert next_occurrences(schedule, after=case.base, count=5) == instants
    return [instant.isoformat().replace("+00:00", "Z") for instant in instants]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_case_from_the_field(case: Case) -> None:
    ours = case.alt[0].expect if case.id in RANGES_WRAP else case.expect

    assert first_five(case) == ours, case.why


def test_strict_cases_have_one_reading() -> None:
    assert not {case.id for case in CASES if case.strict} & RANGES_WRAP
