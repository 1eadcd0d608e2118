"""Executions that may be what ends their workers: when they are suspected, and when it is certain.

A worker that dies takes down all that it runs, and nobody can tell which of it was the cause. So a death is no
failure: each execution that was under way counts one more, and gets an attempt more. From `SUSPECT_FROM` on it runs
alone in a process, where only it can be the cause, and after two more deaths it is `poison`. Statements of the hot
path and their indexes say the same numbers (claim_due.sql, claim_suspect.sql, candidates_*.sql, reap_*.sql).
"""

from app.domain.failures import Category, Failure

SUSPECT_FROM = 2
"""Deaths of workers from which on an execution runs alone."""
POISON_AT = 4
"""The death at which it fails, whatever attempts it has left."""

LOST_LEASE = Failure.build(
    "LeaseLapsed", "The worker stopped renewing its lease: it died, hung or was cut off", Category.UNKNOWN
)
"""What a death is recorded as that is not the last one."""
POISONED = Failure.build(
    "LeaseLapsed",
    "Four worker processes ended or stopped answering while they ran it, and the last two ran nothing else: it is "
    "not tried again. Look for what ends a whole process: no memory left, a crash in native code, os._exit, a call "
    "that never lets go of the interpreter. Then run it again",
    Category.POISON,
)


def is_suspect(worker_deaths: int) -> bool:
    """Tell whether an execution may run in a process of its own only."""
    return worker_deaths >= SUSPECT_FROM
