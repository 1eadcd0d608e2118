"""The share of what has waited for long: it is given, and it is no more than that."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from app.domain.aging import AGED, MOST_SAVED, ONE_IN, AgedShare, longest_waiting
from app.domain.hints import Ready

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def ready(priority: int, *, since_seconds: float) -> Ready:
    """Return a place whose work has been due for so long."""
    return Ready(298, "general", priority, NOW - timedelta(seconds=since_seconds))


@given(st.lists(st.integers(1, 600), min_size=1, max_size=60))
def test_one_in_ten_starts_is_given_to_aged_work_and_no_more(batches: list[int]) -> None:
    share, urgent, aged = AgedShare(), 0, 0

    for batch in batches:
        owed = share.owed
        share.take(owed)
        aged += owed
        share.pass_over(batch)
        urgent += batch

    # What the last batch earned is still to come.
    assert aged + share.owed <= urgent / (ONE_IN - 1)
    assert aged + share.owed > urgent / (ONE_IN - 1) - 1


@given(st.lists(st.integers(1, 5), max_size=400))
def test_what_could_not_be_taken_does_not_come_in_one_burst(batches: list[int]) -> None:
    share = AgedShare()

    for batch in batches:
        share.pass_over(batch)

    assert share.owed <= MOST_SAVED


def test_nothing_is_owed_when_nothing_waits() -> None:
    share = AgedShare()
    share.pass_over(100)
    share.forget()

    assert share.owed == 0


def test_aged_is_what_has_waited_behind_something_more_urgent_that_is_due() -> None:
    fresh, old, older = ready(0, since_seconds=1), ready(3, since_seconds=60), ready(2, since_seconds=61)
    young = ready(3, since_seconds=AGED.total_seconds() - 0.001)

    assert longest_waiting([fresh, old, older, young], NOW) is older
    assert longest_waiting([fresh, young], NOW) is None
    assert longest_waiting([old], NOW) is None, "it waits behind nobody"
    assert longest_waiting([ready(0, since_seconds=-1), old], NOW) is None, "what is to come passes nobody"
    assert longest_waiting([], NOW) is None
