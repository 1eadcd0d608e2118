"""Where steps stand when they are drawn: columns, no card over another, no line under a card."""

import random
import re
from collections.abc import Iterator

import pytest

from app.ui.workflow_layout import CARD_HEIGHT, CARD_WIDTH, Card, Drawing, draw

_CURVE = re.compile(
    r"M([\d.-]+) ([\d.-]+)(?:H([\d.-]+)|C[\d.-]+ [\d.-]+ [\d.-]+ [\d.-]+ ([\d.-]+) ([\d.-]+))"
)
SHAPES = {
    "one": {"a": []},
    "chain": {"a": [], "b": ["a"], "c": ["b"]},
    "diamond": {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]},
    "long way": {"a": [], "b": ["a"], "c": ["b"], "d": ["c", "a"], "e": ["d", "a", "b"]},
    "apart": {"a": [], "b": [], "c": ["a"]},
}


def graph_of(seed: int, steps: int = 60) -> dict[str, list[str]]:
    chance = random.Random(seed)  # noqa: S311 - the same graphs each time
    keys = [f"s{i}" for i in range(steps)]
    return {
        key: chance.sample(keys[max(0, i - 15) : i], k=min(i, chance.choice([0, 1, 1, 2, 3])) if i else 0)
        for i, key in enumerate(keys)
    }


GRAPHS = [*SHAPES.values(), *(graph_of(seed) for seed in range(6))]


def drawn(after: dict[str, list[str]]) -> Drawing:
    drawing = draw(after)
    assert drawing is not None
    return drawing


def points(path: str) -> Iterator[tuple[float, float]]:
    """Yield points along a path; a curve from one side of a gap to the other stays within it."""
    for x, y, to_x, end_x, end_y in _CURVE.findall(path):
        if to_x:
            yield from ((float(x) + part * (float(to_x) - float(x)) / 20, float(y)) for part in range(21))
        else:
            yield float(x), float(y)
            yield float(end_x), float(end_y)


def is_within(card: Card, x: float, y: float) -> bool:
    return card.x < x < card.x + CARD_WIDTH and card.y - 1 < y < card.y + CARD_HEIGHT + 1


def crossings(drawing: Drawing) -> int:
    """Count the pairs of lines between the same two columns that cross."""
    lines = [
        (float(x), float(y), float(end_y))
        for path in drawing.lines.values()
        for x, y, _, end_x, end_y in _CURVE.findall(path)
        if end_x
    ]
    return sum(
        one[0] == other[0] and (one[1] - other[1]) * (one[2] - other[2]) < 0
        for i, one in enumerate(lines)
        for other in lines[:i]
    )


@pytest.mark.parametrize("after", GRAPHS)
def test_each_step_stands_right_of_all_that_it_comes_after(after: dict[str, list[str]]) -> None:
    column = {card.key: card.column for card in drawn(after).cards}

    assert column.keys() == after.keys()
    assert all(column[key] > column[before] for key, sources in after.items() for before in sources)
    assert all(column[key] == 0 for key, sources in after.items() if not sources)


@pytest.mark.parametrize("after", GRAPHS)
def test_no_card_is_over_another_and_all_are_on_the_picture(after: dict[str, list[str]]) -> None:
    drawing = drawn(after)

    for i, card in enumerate(drawing.cards):
        assert card.x >= 0
        assert card.x + CARD_WIDTH <= drawing.width
        assert card.y >= 0
        assert card.y + CARD_HEIGHT <= drawing.height
        for other in drawing.cards[:i]:
            assert card.column != other.column or abs(card.y - other.y) > CARD_HEIGHT


@pytest.mark.parametrize("after", GRAPHS)
def test_no_line_is_under_a_card_and_each_leads_where_it_should(after: dict[str, list[str]]) -> None:
    drawing = drawn(after)
    cards = {card.key: card for card in drawing.cards}

    assert drawing.lines.keys() == {before for sources in after.values() for before in sources}
    for path in drawing.lines.values():
        for x, y in points(path):
            assert not any(is_within(card, x, y) for card in drawing.cards)
            assert 0 <= y <= drawing.height
    arrivals = {(x, y) for path in drawing.lines.values() for x, y in points(path)}
    for key, sources in after.items():
        card = cards[key]
        assert not sources or (card.x, round(card.y + CARD_HEIGHT / 2, 1)) in arrivals


def test_lines_that_need_not_cross_do_not() -> None:
    sides = [f"a{i}" for i in range(8)]
    after: dict[str, list[str]] = {key: [] for key in sides}
    after |= {f"b{i}": [f"a{7 - i}"] for i in range(8)}
    after |= {f"c{i}": [f"b{(3 * i) % 8}"] for i in range(8)}

    assert crossings(drawn(after)) == 0


def test_a_line_over_several_columns_is_straight_where_nothing_is_in_its_way() -> None:
    after = {"a": [], "b": ["a"], "c": ["b"], "d": ["c"], "e": ["d", "a"]}
    heights = {y for x, y in points(drawn(after).lines["a"]) if CARD_WIDTH + 100 < x < 4 * CARD_WIDTH}

    assert max(heights) - min(heights) < CARD_HEIGHT


def test_what_nobody_could_follow_is_not_drawn() -> None:
    keys = [f"s{i}" for i in range(120)]

    assert draw({key: keys[:i] for i, key in enumerate(keys)}) is None
