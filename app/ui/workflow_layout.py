"""Where the steps of a workflow stand when they are drawn: in columns, each right of all that it comes after.

A line that passes a column has a place of its own there, between the cards: so no line is ever under one. Columns are
those of the longest way to a step; within them the order is the one, among a few that the barycentres of neighbours
suggest, in which the fewest lines cross.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

CARD_WIDTH, CARD_HEIGHT = 212, 52
COLUMN_GAP = 60
ROW_GAP, LINE_GAP = 18, 12
MARGIN = 8
SWEEPS = 16
MOST_PLACES = 2_000
"""Cards and bends: beyond it nobody would follow the lines."""
BEND_WEIGHT = 8
"""Of a bend against a card, where they are moved: long lines are to be straight."""
SETTLINGS = 8
"""After that nothing moves any more that anybody would see."""


class Card(NamedTuple):
    """Where a step's card has its top left corner; its column, and its row there."""

    key: str
    x: float
    y: float
    column: int
    row: int


class Drawing(NamedTuple):
    """Cards, the lines that leave each of them as the path of an SVG, and the points that lines lead to."""

    width: float
    height: float
    cards: list[Card]
    lines: dict[str, str]
    ends: list[tuple[float, float]]


def draw(after: Mapping[str, Sequence[str]]) -> Drawing | None:
    """Return the drawing of steps, each with those that it comes after; None: there is too much to draw."""
    places = _Places(after)
    if places.count > MOST_PLACES:
        return None
    order = _ordered(places)
    return _drawn(places, order, _heights(places, order))


class _Places:
    """Cards and bends by their numbers, cards first; each line leads from one column to the next."""

    def __init__(self, after: Mapping[str, Sequence[str]]) -> None:
        self.keys = list(after)
        number = {key: i for i, key in enumerate(self.keys)}
        self.upstream = [[number[key] for key in after[one]] for one in self.keys]
        self.column = _columns(self.upstream)
        self.before: list[list[int]] = [[] for _ in self.keys]
        self.behind: list[list[int]] = [[] for _ in self.keys]
        self._bend()

    @property
    def count(self) -> int:
        return len(self.column)

    def is_card(self, place: int) -> bool:
        return place < len(self.keys)

    def weight(self, place: int) -> int:
        return 1 if self.is_card(place) else BEND_WEIGHT

    def _bend(self) -> None:
        """Lead the lines: those of one card that pass a column share a bend there, until one of them leaves."""
        bends: dict[tuple[int, int], int] = {}
        for target, sources in enumerate(self.upstream):
            for source in sources:
                here = source
                for column in range(self.column[source] + 1, self.column[target]):
                    if (source, column) not in bends:
                        if self.count > MOST_PLACES:
                            return
                        bends[source, column] = self._add(column)
                        self._connect(here, bends[source, column])
                    here = bends[source, column]
                self._connect(here, target)

    def _add(self, column: int) -> int:
        self.column.append(column)
        self.before.append([])
        self.behind.append([])
        return self.count - 1

    def _connect(self, source: int, target: int) -> None:
        self.behind[source].append(target)
        self.before[target].append(source)


def _columns(upstream: Sequence[Sequence[int]]) -> list[int]:
    """Return for each step the length of the longest way to it."""
    columns, missing = [0] * len(upstream), [len(sources) for sources in upstream]
    downstream: list[list[int]] = [[] for _ in upstream]
    for target, sources in enumerate(upstream):
        for source in sources:
            downstream[source].append(target)
    ready = deque(step for step, count in enumerate(missing) if not count)
    while ready:
        step = ready.popleft()
        for target in downstream[step]:
            columns[target] = max(columns[target], columns[step] + 1)
            missing[target] -= 1
            if not missing[target]:
                ready.append(target)
    return columns


def _ordered(places: _Places) -> list[list[int]]:
    """Return the places of each column from the top down."""
    order: list[list[int]] = [[] for _ in range(max(places.column) + 1)]
    for place, column in enumerate(places.column):
        order[column].append(place)
    best, fewest = order, _crossings(places, order)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        order = _swept(places, order, forwards=sweep % 2 == 0)
        crossings = _crossings(places, order)
        if crossings < fewest:
            best, fewest = order, crossings
    return best


def _swept(places: _Places, order: Sequence[Sequence[int]], *, forwards: bool) -> list[list[int]]:
    """Put each place where the middle of its neighbours on one side is."""
    neighbours = places.before if forwards else places.behind
    found = [list(column) for column in order]
    row = {place: i / len(column) for column in found for i, place in enumerate(column)}
    for column in found if forwards else reversed(found):
        middle = {
            place: sum(row[one] for one in neighbours[place]) / len(neighbours[place])
            if neighbours[place]
            else row[place]
            for place in column
        }
        column.sort(key=middle.__getitem__)
        row.update((place, i / len(column)) for i, place in enumerate(column))
    return found


def _crossings(places: _Places, order: Sequence[Sequence[int]]) -> int:
    row = {place: i for column in order for i, place in enumerate(column)}
    return sum(
        _inversions(
            [there for source in column for there in sorted(row[one] for one in places.behind[source])]
        )
        for column in order
    )


def _inversions(rows: Iterable[int]) -> int:
    """Count the pairs that stand in the wrong order."""
    seen: list[int] = []
    count = 0
    for row in rows:
        count += len(seen) - bisect_left(seen, row + 1)
        insort(seen, row)
    return count


def _heights(places: _Places, order: Sequence[Sequence[int]]) -> list[float]:
    """Return the middle of each place: as near to its neighbours as those above and below it allow."""
    offsets = [list(_offsets(places, column)) for column in order]
    heights = [0.0] * places.count
    for column, below in zip(order, offsets, strict=True):
        for place, offset in zip(column, below, strict=True):
            heights[place] = offset - below[-1] / 2
    for sides in ((places.before,), (places.behind,), (places.before, places.behind)) * SETTLINGS:
        for i in range(len(order)) if sides[0] is places.before else reversed(range(len(order))):
            _settle(places, order[i], offsets[i], heights, sides)
    top = min(heights[place] - _half(places, place) for place in range(places.count))
    return [height - top + MARGIN for height in heights]


def _offsets(places: _Places, column: Sequence[int]) -> Iterator[float]:
    """Yield how far below the first place of a column each of them is at least."""
    offset, above = 0.0, None
    for place in column:
        if above is not None:
            gap = ROW_GAP if places.is_card(place) and places.is_card(above) else LINE_GAP
            offset += _half(places, above) + gap + _half(places, place)
        yield offset
        above = place


def _half(places: _Places, place: int) -> float:
    return CARD_HEIGHT / 2 if places.is_card(place) else 0


def _settle(
    places: _Places,
    column: Sequence[int],
    offsets: Sequence[float],
    heights: list[float],
    sides: Sequence[Sequence[Sequence[int]]],
) -> None:
    """Move the places of a column to the middle of their neighbours, all of them as little off it as they can be."""
    blocks: list[
        tuple[float, float, int]
    ] = []  # weighted sum of wishes, weight, places: those that push each other
    for place, offset in zip(column, offsets, strict=True):
        weight = places.weight(place)
        wished, weighs, count = weight * (_wish(places, place, heights, sides) - offset), float(weight), 1
        while blocks and blocks[-1][0] / blocks[-1][1] > wished / weighs:
            above = blocks.pop()
            wished, weighs, count = wished + above[0], weighs + above[1], count + above[2]
        blocks.append((wished, weighs, count))
    starts = [wished / weighs for wished, weighs, count in blocks for _ in range(count)]
    for place, offset, start in zip(column, offsets, starts, strict=True):
        heights[place] = start + offset


def _wish(
    places: _Places, place: int, heights: Sequence[float], sides: Sequence[Sequence[Sequence[int]]]
) -> float:
    """Return the middle of a place's neighbours; from bend to bend a line is to be straight."""
    near = [
        (heights[one], 1 if places.is_card(place) else places.weight(one))
        for side in sides
        for one in side[place]
    ]
    if not near:
        return heights[place]
    return sum(height * weight for height, weight in near) / sum(weight for _, weight in near)


def _drawn(places: _Places, order: Sequence[Sequence[int]], heights: Sequence[float]) -> Drawing:
    left: list[float] = [MARGIN + column * (CARD_WIDTH + COLUMN_GAP) for column in range(len(order))]
    cards = [
        Card(places.keys[place], left[column], round(heights[place] - CARD_HEIGHT / 2, 1), column, row)
        for column, stack in enumerate(order)
        for row, place in enumerate(place for place in stack if places.is_card(place))
    ]
    lines: dict[str, list[str]] = {}
    owner = list(range(places.count))
    for stack in order:
        for place in stack:
            if places.behind[place]:
                key = places.keys[owner[place]]
                lines.setdefault(key, []).append(_path(places, place, left, heights))
            for target in places.behind[place]:
                if not places.is_card(target):
                    owner[target] = owner[place]
    ends = [
        (left[places.column[step]], round(heights[step], 1))
        for step in range(len(places.keys))
        if places.before[step]
    ]
    return Drawing(
        width=left[-1] + CARD_WIDTH + MARGIN,
        height=round(max(height + _half(places, place) for place, height in enumerate(heights)) + MARGIN),
        cards=cards,
        lines={key: "".join(pieces) for key, pieces in lines.items()},
        ends=ends,
    )


def _path(places: _Places, place: int, left: Sequence[float], heights: Sequence[float]) -> str:
    """Return the lines from one place to the next column; a bend is passed straight."""
    x, y = left[places.column[place]], heights[place]
    beside = x + CARD_WIDTH
    passed = "" if places.is_card(place) else f"M{x:g} {y:.1f}H{beside:g}"
    middle, end = beside + COLUMN_GAP / 2, beside + COLUMN_GAP
    curves = (
        f"M{beside:g} {y:.1f}C{middle:g} {y:.1f} {middle:g} {heights[target]:.1f} {end:g} {heights[target]:.1f}"
        for target in places.behind[place]
    )
    return passed + "".join(curves)
