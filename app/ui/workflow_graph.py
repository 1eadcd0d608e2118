"""Workflows drawn: the cards of their steps with what stands on them. The table beside says the same in words."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from app.domain.workflows.definition import Step
from app.ui.words import lateness
from app.ui.workflow_layout import CARD_HEIGHT, CARD_WIDTH, Card, Drawing, draw
from app.ui.workflow_words import StepLine, when_words

MOST_DRAWN = 300
"""Steps; of more, nobody would see anything."""
KEY_CHARACTERS = 24
"""That a card is wide: keys are drawn in letters of one width."""
NOTE_CHARACTERS = 26
TIMES = "\N{MULTIPLICATION SIGN}"


class Meter(NamedTuple):
    """How far the executions of a step are, as shares from 0 to 1."""

    ended: float
    failed: float


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What stands on a card."""

    card: Card
    key: str
    """Its step's, cut in the middle where it is long."""
    href: str
    title: str
    mark: str = ""
    """The name of its state, of which it has the icon and the colour; empty: it has none."""
    word: str = ""
    note: str = ""
    is_mapped: bool = False
    meter: Meter | None = None


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """A drawing with its cards."""

    drawing: Drawing
    looks: list[Look]
    passed: frozenset[str] = frozenset()
    """Steps that have ended: the lines from them are lit."""
    card_width: int = CARD_WIDTH
    card_height: int = CARD_HEIGHT


def picture_of_run(lines: Sequence[StepLine]) -> Picture | None:
    """Draw the steps of a run as they stand; None: there are too many, or too many lines between them."""
    drawing = _drawing({line.step.key: line.step.depends_on for line in lines})
    if drawing is None:
        return None
    by_key = {line.step.key: line for line in lines}
    passed = frozenset(line.step.key for line in lines if line.step.status == "COMPLETED")
    looks = [_look_of_run(card, by_key[card.key]) for card in drawing.cards]
    return Picture(drawing=drawing, looks=looks, passed=passed)


def picture_of_definition(steps: Sequence[Step], href: str) -> Picture | None:
    """Draw steps as they are defined; `href` is the page of the table that has them. None as in `picture_of_run`."""
    drawing = _drawing({step.key: step.depends_on for step in steps})
    if drawing is None:
        return None
    by_key = {step.key: step for step in steps}
    looks = [_look_of_definition(card, by_key[card.key], href) for card in drawing.cards]
    return Picture(drawing=drawing, looks=looks)


def _drawing(after: dict[str, list[str]]) -> Drawing | None:
    return draw(after) if len(after) <= MOST_DRAWN else None


def _look_of_run(card: Card, line: StepLine) -> Look:
    step = line.step
    word = step.status.capitalize()
    meter, note = None, ""
    if step.instances is not None:
        note = f"{TIMES}{step.instances.total:,}" if step.released_at else f"{TIMES} each"
        meter = _meter(step.instances.by_status, step.instances.total)
        failed = step.instances.by_status.get("FAILED", 0)
        note = f"{failed:,} of {note} failed" if failed else note
    elif step.started_at and step.completed_at:
        note = lateness(1000 * (step.completed_at - step.started_at).total_seconds())
    return Look(
        card=card,
        key=_cut(card.key, KEY_CHARACTERS),
        href=line.page or f"#step-{card.key}",
        title=f"{card.key}: {step.status.lower()}{', ' + line.why if line.why else ''}",
        mark=step.status.lower(),
        word=word,
        note=note,
        is_mapped=step.instances is not None,
        meter=meter,
    )


def _look_of_definition(card: Card, step: Step, href: str) -> Look:
    rule = f", runs when {when_words(step.when)}" if step.depends_on else ""
    return Look(
        card=card,
        key=_cut(card.key, KEY_CHARACTERS),
        href=f"{href}#step-{card.key}",
        title=f"{card.key}: task {step.task_id}{rule}",
        word=_cut(step.task_id, NOTE_CHARACTERS),
        note=f"{TIMES} each" if step.map is not None else "",
        is_mapped=step.map is not None,
    )


def _meter(by_status: dict[str, int], total: int) -> Meter | None:
    if not total:
        return None
    ended = sum(by_status.get(status, 0) for status in ("COMPLETED", "FAILED", "CANCELLED", "SKIPPED"))
    return Meter(ended / total, by_status.get("FAILED", 0) / total)


def _cut(text: str, most: int) -> str:
    """Cut what is too long in its middle: names that belong together often differ at their ends."""
    if len(text) <= most:
        return text
    end = most // 2 - 1
    return f"{text[: most - 1 - end]}…{text[-end:]}"
