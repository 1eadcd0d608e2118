"""The slots of this worker: who has them, and who may take those that are free."""

from collections import Counter
from collections.abc import Mapping

from app.db.stores.catalog import Catalog
from app.domain.claims import QueueToServe
from app.domain.slots import open_slots, reservations, shared_slots, unused_slots


class Slots:
    """Counts the slots that each queue has, beside those that the queues served here have reserved.

    The rules are `domain.slots`; how many slots are open to everybody is counted along, for every start asks.
    """

    def __init__(self, catalog: Catalog, *, total: int, queues: tuple[str, ...]) -> None:
        self._catalog = catalog
        self._total = total
        self._queues = queues
        self._held: Counter[str] = Counter()
        self._read_from: Mapping[str, QueueToServe] | None = None
        self._reserved: dict[str, int] = {}
        self._shared = total

    def take(self, queue: str) -> None:
        """A queue has one more."""
        reserved = self._reservations()
        self._held[queue] = held = self._held[queue] + 1
        if held > reserved.get(queue, 0):
            self._shared -= 1

    def give_back(self, queue: str) -> bool:
        """A queue has one less; return whether that slot is open to everybody now."""
        reserved = self._reservations()
        self._held[queue] = held = self._held[queue] - 1
        is_shared = held >= reserved.get(queue, 0)
        if is_shared:
            self._shared += 1
        return is_shared

    def open_to(self, queue: str) -> int:
        """Return how many slots a queue may take now."""
        return self.open_to_all() + self.unused_of(queue)

    def open_to_all(self) -> int:
        """Return how many slots every queue may take now."""
        self._reservations()
        return self._shared

    def open_ahead(self, queue: str, leased: Mapping[str, int]) -> int:
        """Return how many executions of a queue may be leased ahead, beside those `leased` of each queue: together
        they promise no slot that is reserved for another."""
        return open_slots(queue, slots=self._total, reserved=self._reservations(), held=leased)

    def unused_of(self, queue: str) -> int:
        """Return how many of the slots reserved for a queue it does not use."""
        return unused_slots(queue, reserved=self._reservations(), held=self._held)

    def has_unused(self) -> bool:
        """Tell whether some reserved slot is not used."""
        return any(self.unused_of(queue) for queue in self._reservations())

    def _reservations(self) -> dict[str, int]:
        if self._read_from is not self._catalog.queues:  # the catalog replaces them when it reads them anew
            self._read_from = self._catalog.queues
            served = (q for q in self._read_from.values() if not self._queues or q.queue in self._queues)
            self._reserved = reservations(served, slots=self._total)
            self._shared = shared_slots(slots=self._total, reserved=self._reserved, held=self._held)
        return self._reserved
