"""How long limits have kept executions waiting, as this worker has seen it."""

from datetime import datetime, timedelta

import msgspec

from app.db.stores.admissions import LimitedClaims
from app.domain.claims import Claim

MOST_KEYS = 20_000


class Throttled:
    """Remembers since when each limit has been full.

    What an execution waits for a limit is no lateness: nobody promised a start. It is told apart as far as a worker
    has seen it; what it has not seen, for it was busy or began a moment ago, counts as lateness.
    """

    def __init__(self) -> None:
        self._full_since: dict[str, datetime] = {}

    def note(self, found: LimitedClaims, now: datetime) -> list[Claim]:
        """Take what a claim found; return its executions with the time that limits have kept them waiting."""
        claims = [self._told_apart(claim, found.keys.get(claim.execution_id, [])) for claim in found.claims]
        for key in (key for keys in found.keys.values() for key in keys if key not in found.full):
            self._full_since.pop(key, None)
        if len(self._full_since) > MOST_KEYS:
            self._full_since.clear()
        for key in found.full:
            self._full_since.setdefault(key, now)
        return claims

    def _told_apart(self, claim: Claim, keys: list[str]) -> Claim:
        seen = [self._full_since[key] for key in keys if key in self._full_since]
        if not seen or claim.attempt_number > 1:
            return claim
        waited = claim.claimed_at - max(min(seen), claim.first_due_at)
        return msgspec.structs.replace(claim, throttled_ms=max(0.0, waited / timedelta(milliseconds=1)))
