"""The first steps of a process that was forked for an attempt."""

import os
import signal
import socket
from collections.abc import Mapping
from typing import NoReturn

from app.tasks import Handler
from app.worker.isolation.command import become
from app.worker.isolation.function import FunctionRun
from app.worker.isolation.limits import end_with
from app.worker.isolation.messages import Command, Function, receive_message

LINE, STDOUT, STDERR = range(3)
"""Which file descriptor of a request is which."""
_SET_BY_THE_SERVER = (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM)


def run_child(descriptors: list[int], functions: Mapping[str, Handler], *, server_pid: int) -> NoReturn:
    """Do what the worker says on the line, and end."""
    os.setsid()  # its group is what is killed, with all that it has started
    end_with(server_pid)
    _take_output(descriptors)
    for number in _SET_BY_THE_SERVER:
        signal.signal(number, signal.SIG_DFL)
    line = socket.socket(fileno=descriptors[LINE])
    match receive_message(line):
        case Command() as command:
            become(command, line)
        case Function() as function:
            FunctionRun(function, line, functions[function.name]).run()
        case _:  # the worker has gone
            os._exit(os.EX_UNAVAILABLE)


def _take_output(descriptors: list[int]) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (descriptors[STDOUT], 1), (descriptors[STDERR], 2)):
        os.dup2(source, target)
        os.close(source)
