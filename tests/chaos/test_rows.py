"""Which rows of a run may be run once more."""

import pytest

from tests.chaos.__main__ import is_about_time


@pytest.mark.parametrize(
    ("why", "answer"),
    [
        (("I10: 0190 began again after 9.00 s, not 8.00", "journals: here"), True),
        (("I9: 0190 began 2.10 s late", "the first start came after 2.41 s"), True),
        (("an answer took 11.0 s",), True),
        (("I1: 0190 was lost",), False),
        (("I9: 0190 began 2.10 s late", "I7: 0190 began again after epoch 3: unexplained"), False),
        (("2 completed twice",), False),
        (("the API answered 500 1 times",), False),
        (("Traceback (most recent call last): …",), False),
    ],
)
def test_only_what_came_too_late_gets_a_second_run(why: tuple[str, ...], answer: bool) -> None:  # noqa: FBT001
    assert is_about_time(why) is answer
