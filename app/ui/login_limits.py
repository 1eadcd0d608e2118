"""How often somebody may try to log in.

Keys and links are 256 bits: nobody guesses them, and the limit is not what keeps them out. It bounds what strangers
can make the database do, and the chances against a key that an administrator chose badly. So it is kept in the
process and not in the database (a write for each attempt would be the very load it is against): with several API
processes the limit is so many times as high, and it is forgotten at a restart.
"""

import ipaddress
import math
import time
from collections.abc import Callable

FAILURES_OF_AN_ADDRESS = 10
FAILURES_OF_ALL = 200
SECONDS_TO_FORGET_ONE = 6.0
"""So an address may fail ten times at once, and ten times a minute for good."""
ADDRESSES_KEPT = 10_000
_EVERYBODY = "*"


class LoginLimits:
    """Counts failed logins, by address and of all together; each count leaks away with time."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._failures: dict[str, tuple[float, float]] = {}
        """Who: how many failures at which moment."""

    def seconds_to_wait(self, address: str | None) -> int:
        """Return how long an address must wait that failed too often of late, or everybody once all did; else 0."""
        allowed = {_place(address): FAILURES_OF_AN_ADDRESS, _EVERYBODY: FAILURES_OF_ALL}
        return math.ceil(max(0.0, *(self._wait_of(who, most) for who, most in allowed.items())))

    def note_failure(self, address: str | None) -> None:
        """Count a failed login."""
        if len(self._failures) >= ADDRESSES_KEPT:
            self._forget_old()
        for who, speed in ((_place(address), 1.0), (_EVERYBODY, FAILURES_OF_ALL / FAILURES_OF_AN_ADDRESS)):
            self._failures[who] = (self._left(who, speed) + 1, self._monotonic())

    def _wait_of(self, who: str, most: int) -> float:
        speed = most / FAILURES_OF_AN_ADDRESS
        return (self._left(who, speed) - most + 1) * SECONDS_TO_FORGET_ONE / speed

    def _left(self, who: str, speed: float) -> float:
        count, since = self._failures.get(who, (0.0, 0.0))
        return max(0.0, count - (self._monotonic() - since) * speed / SECONDS_TO_FORGET_ONE)

    def _forget_old(self) -> None:
        self._failures = {who: kept for who, kept in self._failures.items() if self._left(who, 1.0) > 0}
        while len(self._failures) >= ADDRESSES_KEPT:
            self._failures.pop(next(iter(self._failures)))


def _place(address: str | None) -> str:
    """Return what counts as one place: of IPv6 a /64, of which one customer has as many addresses as they like."""
    try:
        parsed = ipaddress.ip_address(address or "")
    except ValueError:
        return address or "unknown"
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is None:
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)
