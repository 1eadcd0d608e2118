"""What is reserved is there when it is needed, and never more than half."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from app.domain.claims import QueueToServe
from app.domain.slots import open_slots, reservations

QUEUES = ("bulk", "critical", "general", "alerts")


def queue(name: str, *, reserved: int = 0, priority: int = 2, paused: bool = False) -> QueueToServe:
    """Return a queue that reserves slots."""
    return QueueToServe(
        queue=name,
        max_delay_ms=100,
        lease_seconds=30,
        batch_size=100,
        relaxed=False,
        paused=paused,
        priority=priority,
        reserved_slots=reserved,
        interruptible=False,
    )


def test_half_of_the_slots_at_most_are_reserved_the_most_urgent_first() -> None:
    queues = [queue("general", reserved=3), queue("critical", reserved=4, priority=0), queue("bulk")]

    assert reservations(queues, slots=100) == {"critical": 4, "general": 3}
    assert reservations(queues, slots=10) == {"critical": 4, "general": 1}
    assert reservations(queues, slots=4) == {"critical": 2}
    assert reservations(queues, slots=1) == {}


def test_a_paused_queue_keeps_nothing_from_others() -> None:
    assert reservations([queue("critical", reserved=4, paused=True)], slots=100) == {}


@given(
    slots=st.integers(1, 12),
    asked=st.fixed_dictionaries({name: st.integers(0, 8) for name in QUEUES}),
    moves=st.lists(st.tuples(st.sampled_from(QUEUES), st.booleans()), max_size=80),
)
def test_whoever_takes_only_open_slots_leaves_every_reservation_whole(
    slots: int, asked: dict[str, int], moves: list[tuple[str, bool]]
) -> None:
    reserved = reservations([queue(name, reserved=count) for name, count in asked.items()], slots=slots)
    held: Counter[str] = Counter()

    for name, starts in moves:
        if starts and open_slots(name, slots=slots, reserved=reserved, held=held) > 0:
            held[name] += 1
        elif not starts and held[name]:
            held[name] -= 1
        assert held.total() <= slots
        for owner, count in reserved.items():
            assert open_slots(owner, slots=slots, reserved=reserved, held=held) >= count - held[owner]

    assert sum(reserved.values()) <= slots // 2


def test_without_reservations_every_slot_is_open_to_everybody() -> None:
    assert open_slots("bulk", slots=4, reserved={}, held={"bulk": 1, "general": 2}) == 1
