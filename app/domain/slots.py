"""How a worker's slots are shared between queues: those reserved for one are not taken by the others."""

from collections.abc import Iterable, Mapping

from app.domain.claims import QueueToServe


def reservations(queues: Iterable[QueueToServe], *, slots: int) -> dict[str, int]:
    """Return how many of a worker's slots are reserved for which queue.

    The most urgent queues come first, and together they get no more than half of the slots, so that a small worker
    still serves the others; of a single slot none. A paused queue has nothing to start and reserves nothing.
    """
    left = slots // 2
    reserved: dict[str, int] = {}
    for queue in sorted(queues, key=lambda q: (q.priority, q.queue)):
        count = min(queue.reserved_slots, left)
        if count and not queue.paused:
            reserved[queue.queue] = count
            left -= count
    return reserved


def open_slots(queue: str, *, slots: int, reserved: Mapping[str, int], held: Mapping[str, int]) -> int:
    """Return how many slots a queue may still take: what is free, less what others have reserved and do not use.

    `held`: the slots that each queue has. Below zero where reservations were made after slots had been taken.
    """
    shared = shared_slots(slots=slots, reserved=reserved, held=held)
    return shared + unused_slots(queue, reserved=reserved, held=held)


def shared_slots(*, slots: int, reserved: Mapping[str, int], held: Mapping[str, int]) -> int:
    """Return how many slots are open to everybody: neither taken nor reserved."""
    return slots - sum(
        max(held.get(name, 0), reserved.get(name, 0)) for name in held.keys() | reserved.keys()
    )


def unused_slots(queue: str, *, reserved: Mapping[str, int], held: Mapping[str, int]) -> int:
    """Return how many of the slots reserved for a queue it does not use."""
    return max(0, reserved.get(queue, 0) - held.get(queue, 0))
