"""Slots that are counted along are those that the rules give."""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.db.stores.catalog import Catalog
from app.domain.claims import QueueToServe
from app.domain.slots import open_slots, reservations
from app.worker.slots import Slots

TOTAL = 8
QUEUES = ("bulk", "critical", "general")
NOBODY: Any = None  # reads nothing


def queues(reserved: tuple[int, ...]) -> dict[str, QueueToServe]:
    """Return all queues, each with so many slots reserved."""
    return {
        name: QueueToServe(
            queue=name,
            max_delay_ms=100,
            lease_seconds=30,
            batch_size=100,
            relaxed=False,
            paused=False,
            priority=2,
            reserved_slots=count,
            interruptible=False,
        )
        for name, count in zip(QUEUES, reserved, strict=True)
    }


TAKE_OR_GIVE_BACK = st.tuples(st.sampled_from(QUEUES), st.booleans())
CHANGE = st.tuples(*(st.integers(0, 4) for _ in QUEUES))


@given(st.lists(st.one_of(TAKE_OR_GIVE_BACK, CHANGE), max_size=60))
def test_they_are_counted_as_the_rules_say(moves: list[tuple[Any, ...]]) -> None:
    catalog = Catalog(NOBODY)
    slots, held = Slots(catalog, total=TOTAL, queues=()), Counter[str]()

    for move in moves:
        match move:
            case (str(queue), True):
                slots.take(queue)
                held[queue] += 1
            case (str(queue), False) if held[queue]:
                before = slots.open_to_all()
                assert slots.give_back(queue) == (slots.open_to_all() > before)
                held[queue] -= 1
            case (int(), int(), int()):
                catalog.queues = queues(move)
        reserved = reservations(catalog.queues.values(), slots=TOTAL)
        for queue in (*QUEUES, "other"):
            assert slots.open_to(queue) == open_slots(queue, slots=TOTAL, reserved=reserved, held=held)
            assert slots.open_ahead(queue, held) == slots.open_to(queue)


def test_what_a_worker_does_not_serve_reserves_nothing_there() -> None:
    catalog = Catalog(NOBODY)
    catalog.queues = queues((0, 4, 0))

    assert Slots(catalog, total=TOTAL, queues=("bulk", "general")).open_to("bulk") == 8
    assert Slots(catalog, total=TOTAL, queues=("bulk", "critical")).open_to("bulk") == 4
