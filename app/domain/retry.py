"""How long to wait before the next attempt."""

from enum import StrEnum

import msgspec

JITTER = 0.2
"""A delay is lengthened by up to this share, so that what failed together does not return together."""


class RetryPolicy(StrEnum):
    """How the delay grows with the number of failed attempts."""

    EXPONENTIAL = "exponential"
    """base, 2 base, 4 base, …"""
    LINEAR = "linear"
    """base, 2 base, 3 base, …"""
    FIXED = "fixed"
    """base, base, base, …"""


class Backoff(msgspec.Struct, frozen=True):
    """A retry policy with its first and its longest delay."""

    policy: RetryPolicy
    delay_seconds: float
    max_delay_seconds: float

    def delay_after(self, attempt_number: int, *, jitter: float) -> float:
        """Return the seconds to wait after the failed attempt `attempt_number` (from 1).

        `jitter` is a random number in [0, 1). Never more than `max_delay_seconds`: clamped before it is
        computed, because 2 ** 47 seconds are not a date any more.
        """
        return min(
            self._factor(attempt_number) * self.delay_seconds * (1 + JITTER * jitter), self.max_delay_seconds
        )

    def _factor(self, attempt_number: int) -> float:
        match self.policy:
            case RetryPolicy.EXPONENTIAL:
                return 2.0 ** min(attempt_number - 1, 62)
            case RetryPolicy.LINEAR:
                return float(attempt_number)
            case RetryPolicy.FIXED:
                return 1.0
