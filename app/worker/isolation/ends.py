"""Processes that ended otherwise than they should."""

import signal

from app.domain.failures import Category


class ExitStatus(Exception):
    """A process ended with a status that says that it failed."""

    def __init__(self, what: str, status: int, *, said: str = "") -> None:
        super().__init__(f"{what} ended with exit status {status}" + (f": {said}" if said else ""))
        self.exit_code = status


class KilledBySignal(Exception):
    """A signal has ended a process, and the worker had not sent it."""

    def __init__(self, what: str, number: int, *, said: str = "") -> None:
        guess = " (out of memory, probably)" if number == signal.SIGKILL else ""
        super().__init__(f"{what} was killed by {_name(number)}{guess}" + (f": {said}" if said else ""))
        self.exit_code = -number
        self.category = Category.RESOURCE_EXHAUSTION if number == signal.SIGKILL else Category.UNKNOWN


def failure_of_end(what: str, status: int, *, said: str = "") -> ExitStatus | KilledBySignal:
    """Return what the end of a process means; -N: signal N has killed it. `said`: its own last words."""
    if status < 0:
        return KilledBySignal(what, -status, said=said)
    return ExitStatus(what, status, said=said)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"
