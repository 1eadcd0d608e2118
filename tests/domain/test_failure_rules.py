"""Rules of a task: which failures they fit, and what they say of them."""

import msgspec
import pytest

from app.domain.errors import InvalidInput
from app.domain.failure_rules import FailureMatch, FailureRule, check_rules, ruled
from app.domain.failures import Category, Failure, Severity


class Refused(ConnectionError):
    """An answer that was not wanted."""

    def __init__(self, text: str, *, http_status: int | None = None, exit_code: int | None = None) -> None:
        super().__init__(text)
        self.http_status = http_status
        self.exit_code = exit_code


ERROR = Refused("quota of team 7 is used up", http_status=409, exit_code=75)


@pytest.mark.parametrize(
    ("match", "fits"),
    [
        (FailureMatch(type="Refused"), True),
        (FailureMatch(type="OSError"), True),
        (FailureMatch(type="ValueError"), False),
        (FailureMatch(http_status=409), True),
        (FailureMatch(http_status=404), False),
        (FailureMatch(exit_code=75), True),
        (FailureMatch(exit_code=0), False),
        (FailureMatch(message="quota of"), True),
        (FailureMatch(message="Quota"), False),
        (FailureMatch(message=".*"), False),
        (FailureMatch(type="Refused", http_status=409, message="used up"), True),
        (FailureMatch(type="Refused", http_status=404, message="used up"), False),
    ],
)
def test_a_rule_fits_what_everything_in_its_match_fits(match: FailureMatch, *, fits: bool) -> None:
    assert match.fits(Failure.of(ERROR), ERROR) is fits


def test_the_first_rule_that_fits_counts_and_brings_its_severity() -> None:
    rules = [
        FailureRule(match=FailureMatch(type="ValueError"), retry=False),
        FailureRule(match=FailureMatch(http_status=409), category=Category.CONFIGURATION_ERROR, retry=True),
        FailureRule(match=FailureMatch(type="Refused"), retry=False),
    ]

    failure, retry = ruled(Failure.of(ERROR), ERROR, rules)

    assert (failure.category, failure.severity, retry) == (Category.CONFIGURATION_ERROR, Severity.HIGH, True)
    assert failure.fingerprint == Failure.of(ERROR).fingerprint


def test_without_a_rule_that_fits_a_failure_stays_what_it_is() -> None:
    failure = Failure.of(ERROR)

    assert ruled(failure, ERROR, [FailureRule(match=FailureMatch(http_status=500), retry=True)]) == (
        failure,
        None,
    )


def test_a_timeout_has_its_type_though_no_exception() -> None:
    failure = Failure.build("TimeoutError", "too long", Category.TIMEOUT)
    rules = [FailureRule(match=FailureMatch(type="TimeoutError"), retry=False)]

    assert ruled(failure, None, rules) == (failure, False)


@pytest.mark.parametrize(
    ("rule", "pointer"),
    [
        ({"match": {}, "retry": False}, "/failure_rules/1/match"),
        ({"match": {"type": "X"}}, "/failure_rules/1"),
        ({"match": {"type": "X"}, "category": "poison"}, "/failure_rules/1/category"),
    ],
)
def test_a_rule_that_means_nothing_is_refused(rule: dict[str, object], pointer: str) -> None:
    good = {"match": {"type": "X"}, "retry": False}
    rules = msgspec.convert([good, rule], list[FailureRule])

    with pytest.raises(InvalidInput) as refused:
        check_rules(rules)

    assert refused.value.pointer == pointer
