"""Which rows a run of chaos has, and with which seeds."""

from pathlib import Path

import pytest

from tests.chaos.__main__ import Plan, _options, _plans


def plans(*arguments: str, seed: int) -> list[Plan]:
    """Return the rows that these arguments ask for."""
    return list(_plans(_options(arguments), Path(), seed))


@pytest.mark.parametrize("length", [(), ("--full",)], ids=["sample", "full"])
def test_a_row_that_failed_can_be_run_again_by_itself(length: tuple[str, ...]) -> None:
    for row in plans(*length, seed=100):
        again = plans("--only", row.scenario.name, *length, seed=row.seed)[0]

        assert (again.scenario.name, again.seed, again.times) == (row.scenario.name, row.seed, row.times)


def test_a_row_whose_stage_is_used_up_is_there_as_often_as_it_is_promised() -> None:
    rows = plans("--only", "zombie", "--full", seed=100)

    assert [(row.seed, row.times) for row in rows] == [(100 + number, 1) for number in range(5)]
    assert len({row.folder for row in rows}) == 5
