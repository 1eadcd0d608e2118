"""What times have to fit into each other, so that what is promised about leases and instants can be kept.

A lease has to outlive one renewal that hangs. A worker has to find an execution early enough to fire it on its
instant, from memory.
"""

from collections.abc import Iterator

RENEW_AFTER = 1 / 3
"""A lease is renewed when this share of it has passed."""
LOOKS_IN_A_LEASE = 6
LONGEST_BETWEEN_LOOKS_SECONDS = 2.0
SHORTEST_TURN_SECONDS = 1.0
"""How long a turn of the lease keeper may take at least: an answer that takes so long is still worth having."""
NEXT_TURN_SECONDS = 0.2
"""Pause after a turn that failed."""
POLL_SECONDS = 0.9
"""How often idle workers and materializers look by themselves: with jitter, less than a second."""
LONGEST_POLL_SECONDS = 1.1 * POLL_SECONDS
UNASKED_EVERY_SECONDS = 60.0
"""So often a loop turns by itself that is woken whenever it has something to do."""
LOOK_EVERY_SECONDS = 0.25
"""How often a worker that knows of work looks for other: what is more urgent, or falls due soon, without a hint."""
LOOK_WHEN_FULL_SECONDS = 0.9 * POLL_SECONDS
"""The same of a worker whose slots are taken, but for those that are reserved or that others would yield."""
ARM_AHEAD_SECONDS = 0.05
"""How long before its instant an execution is armed: room for one statement, and little enough that a cancel
a moment before the instant still wins."""
ROUND_TRIP_SECONDS = 0.1
"""What a statement may take on a busy server."""


def between_looks_seconds(lease_seconds: float) -> float:
    """Return how often the lease keeper sees what is due."""
    return min(lease_seconds / LOOKS_IN_A_LEASE, LONGEST_BETWEEN_LOOKS_SECONDS)


def turn_seconds(lease_seconds: float) -> float:
    """Return how long a turn of the lease keeper may take before it counts as failed."""
    return max(SHORTEST_TURN_SECONDS, between_looks_seconds(lease_seconds))


def problems(*, lease_seconds: float, lookahead_ms: float) -> Iterator[tuple[str, str]]:
    """Yield each setting that breaks a promise, and why: the sum that it would have to be."""
    lease = {
        "until it is due to be renewed": lease_seconds * RENEW_AFTER,
        "until that is seen": between_looks_seconds(lease_seconds),
        "for a renewal that hangs": turn_seconds(lease_seconds),
        "until the next one": 1.1 * NEXT_TURN_SECONDS,
        "for that one": ROUND_TRIP_SECONDS,
    }
    if sum(lease.values()) > lease_seconds:
        yield "lease_seconds", f"one renewal that hangs would lose it: {_sum(lease)}; use 3 or more"
    lookahead = {
        "between two looks of an idle worker": LONGEST_POLL_SECONDS,
        "for a look that it leaves out": LOOK_EVERY_SECONDS,
        "to arm ahead": ARM_AHEAD_SECONDS,
        "for the claim": ROUND_TRIP_SECONDS,
    }
    if sum(lookahead.values()) * 1000 > lookahead_ms:
        why = f"what falls due between two looks would start late: {_sum(lookahead)}"
        yield "lookahead_ms", f"{why}; use 1400 or more"


def _sum(parts: dict[str, float]) -> str:
    return (
        " + ".join(f"{value:.2f} s {what}" for what, value in parts.items())
        + f" = {sum(parts.values()):.2f} s"
    )
