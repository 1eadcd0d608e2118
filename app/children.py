"""A child's side of the line that `serve` holds to each process it starts.

The line is a pair of connected sockets; the child finds the number of its end in the environment. It writes
one byte when it is ready, and reads end-of-file when its supervisor has gone, however that ended.
"""

import logging
import os
import signal
import socket
import threading
import time
from contextlib import suppress
from typing import Self

from app.settings import take_supervisor_fd

log = logging.getLogger(__name__)

READY = b"\n"
MARGIN_SECONDS = 3.0
"""What a child gets beyond its grace before it is ended by force."""


class SupervisorLine:
    """The line to the supervisor. In a process that a person started it leads nowhere and does nothing."""

    def __init__(self, line: socket.socket | None) -> None:
        self._line = line

    @classmethod
    def from_env(cls) -> Self:
        """Take the line that the supervisor left for this process; a second call finds none."""
        number = take_supervisor_fd()
        return cls(None if number is None else socket.socket(fileno=number))

    @property
    def leads_somewhere(self) -> bool:
        """Tell whether a supervisor has started this process, and would start it again."""
        return self._line is not None

    def report_ready(self) -> None:
        """Tell the supervisor that this process does its work now."""
        if self._line is not None:
            with suppress(OSError):  # a supervisor that has gone is the watcher's matter
                self._line.sendall(READY)

    def exit_with_parent(self, *, grace_seconds: float) -> None:
        """Have this process get SIGTERM when its supervisor goes, and end by force a margin after its grace.

        To be called once, at the start.
        """
        if self._line is not None:
            watch = threading.Thread(
                target=self._watch, args=(self._line, grace_seconds), name="supervisor-line", daemon=True
            )
            watch.start()

    def _watch(self, line: socket.socket, grace_seconds: float) -> None:
        with suppress(OSError):
            while line.recv(1):
                pass
        log.error("the supervisor has gone: stopping", extra={"event": "supervisor_gone"})
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(grace_seconds + MARGIN_SECONDS)
        os._exit(1)
