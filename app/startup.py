"""What keeps a process from starting, in one line that names the setting and the remedy; and exit statuses."""

CANNOT_START = 78
"""Exit status of a process that will fail again however often it is started (`EX_CONFIG` of sysexits.h)."""
START_AGAIN = 75
"""Exit status of a process that has ended itself, in good order, to be replaced by a new one (`EX_TEMPFAIL`)."""


class CannotStart(Exception):
    """A process cannot start. `status` is what it exits with: 1 where trying again may help. `passes`: what is in the
    way, a database that is down, goes by itself."""

    def __init__(self, why: str, *, status: int = CANNOT_START, passes: bool = False) -> None:
        super().__init__(why)
        self.status = status
        self.passes = passes
