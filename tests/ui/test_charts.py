"""The geometry of charts."""

import pytest

from app.ui.charts import bars, sparkline


def test_the_highest_column_fills_the_height_and_parts_stand_on_each_other() -> None:
    tall, low = bars([(30, 10), (20, 0)], width=100, height=80)

    assert [(part.y, part.height) for part in tall.segments] == [(20, 60), (0, 20)]
    assert [(part.y, part.height) for part in low.segments] == [(40, 40), (40, 0)]
    assert (tall.x, low.x, tall.width) == (0, 50, 50)


def test_one_failure_among_many_is_still_seen() -> None:
    [column] = bars([(1_000_000, 1)], width=10, height=100)

    assert [part.height for part in column.segments] == [pytest.approx(100, abs=0.01), 1.0]


def test_where_nothing_happened_nothing_is_drawn() -> None:
    assert bars([], width=10, height=10) == []
    assert [part.height for column in bars([(0, 0)], width=10, height=10) for part in column.segments] == [
        0,
        0,
    ]


def test_a_sparkline_goes_from_edge_to_edge() -> None:
    assert sparkline([0, 5, 10], width=20, height=10) == "0.0,10.0 10.0,5.0 20.0,0.0"
    assert sparkline([3], width=20, height=10) == "0.0,0.0"
    assert sparkline([], width=20, height=10) == ""
