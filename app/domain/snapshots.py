"""What a database session can see at a moment."""

from datetime import datetime
from typing import NamedTuple


class Snapshot(NamedTuple):
    """Every transaction with a number below `oldest` has ended and is seen; one that gets `next` or more begins to
    write after `taken_at`."""

    taken_at: datetime
    oldest: int
    next: int
