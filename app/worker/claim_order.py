"""In which order a worker claims at the places where work is."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from app.domain.aging import AgedShare, longest_waiting
from app.domain.hints import Ready
from app.domain.ids import SHARDS


class Turn(NamedTuple):
    """A place to claim at; `at_most`: so many, which are owed to work that has waited for long."""

    place: Ready
    at_most: int | None = None


class ClaimOrder:
    """Most urgent first, but for the share of what has waited for long (`AgedShare`).

    Of places that are equally urgent each has its turn: the next round begins behind the shard of the last claim. A
    backlog in one shard must not stand before what waits in the others. Workers begin at different shards, so they
    rarely meet.
    """

    def __init__(self, *, first_shard: int) -> None:
        self._first_shard = first_shard
        self._share = AgedShare()
        self._aged: Ready | None = None

    def turns(self, places: Iterable[Ready], now: datetime) -> list[Turn]:
        """Return where to claim, one after the other."""
        ordered = sorted(places, key=self._rank)
        self._aged = longest_waiting(ordered, now)
        if self._aged is None:
            self._share.forget()
        owed = [Turn(self._aged, self._share.owed)] if self._aged and self._share.owed else []
        return owed + [Turn(place) for place in ordered]

    def note(self, turn: Turn, claimed: int) -> None:
        """Take how many were claimed in a turn."""
        if claimed and turn.at_most is None:
            self._first_shard = SHARDS.index(turn.place.shard) + 1
        if turn.at_most is not None:
            self._share.take(claimed)
        elif self._aged is not None and turn.place.priority < self._aged.priority:
            self._share.pass_over(claimed)

    def _rank(self, place: Ready) -> tuple[int, int, datetime]:
        turn = (SHARDS.index(place.shard) - self._first_shard) % len(SHARDS)
        return place.priority, turn, place.due_at
