"""Becoming a command."""

import errno
import os
import signal
import socket
import tempfile
from typing import NoReturn

from app.worker.isolation.limits import limit_memory
from app.worker.isolation.messages import Command, NotStarted, framed

NOT_FOUND_STATUS = 127
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
"""A program inherits what is ignored, and does not expect it."""


def become(command: Command, line: socket.socket) -> NoReturn:
    """Run a command in place of this process; the line closes when it starts. Says why where it cannot."""
    try:
        with tempfile.TemporaryFile() as stdin:  # no pipe: who does not read it keeps nobody waiting
            stdin.write(command.stdin)
            stdin.seek(0)
            os.dup2(stdin.fileno(), 0)
        for number in _IGNORED_BY_PYTHON:
            signal.signal(number, signal.SIG_DFL)
        if command.memory_mb:
            limit_memory(command.memory_mb)
        os.execvpe(command.argv[0], command.argv, command.environment)  # noqa: S606 - no shell is the point
    except OSError as error:
        line.sendall(framed(NotStarted(error.errno or 0)))
    except ValueError:  # a NUL
        line.sendall(framed(NotStarted(errno.EINVAL)))
    os._exit(NOT_FOUND_STATUS)
