"""The process beside a worker that forks a process for each attempt: `python -m app.worker.isolation.fork_server`.

Forking a worker itself would copy its threads' locks and its connections; starting an interpreter anew costs many
times as much. So this process, which has one thread, imports the task modules once and then does nothing but fork,
kill and wait. It ends when its worker does, and ends what it has started first.
"""

import gc
import importlib
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress

from app.tasks import Handler, handlers_in
from app.worker.isolation.child import run_child
from app.worker.isolation.messages import DESCRIPTORS, FORK, READY_NUMBER, REPORT, REQUEST

_THREADS = (
    "onthedot: importing the task modules has started threads ({}); isolated functions run without them\n"
)


class ForkServer:
    """Forks, kills and waits as it is told on the line `control`."""

    def __init__(self, control: socket.socket, functions: Mapping[str, Handler]) -> None:
        self._control = control
        self._functions = functions
        self._processes: dict[int, int] = {}
        """From pid to number."""
        self._wake, self._woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC) if hasattr(os, "pipe2") else _pipe()

    def run(self) -> None:
        """Serve until the worker goes."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        self._report(READY_NUMBER, 0)
        try:
            while self._turn():
                pass
        finally:
            for pid in self._processes:
                _kill(pid, signal.SIGKILL)

    def _turn(self) -> bool:
        """Wait for something to do and do it; False once the worker has gone."""
        ready, _, _ = select.select([self._control.fileno(), self._wake], [], [])
        if self._wake in ready:
            self._reap()
        if self._control.fileno() not in ready:
            return True
        try:
            return self._serve()
        except ConnectionError:  # it has gone with reports unread
            return False

    def _serve(self) -> bool:
        """Do what the worker asks for next; False where it has gone."""
        data, descriptors, _, _ = socket.recv_fds(self._control, REQUEST.size, DESCRIPTORS)
        if len(data) < REQUEST.size:
            return False
        number, order = REQUEST.unpack(data)
        if order == FORK:
            self._fork(number, descriptors)
        else:
            for pid in [pid for pid, its in self._processes.items() if its == number]:
                _kill(pid, order)
        return True

    def _fork(self, number: int, descriptors: list[int]) -> None:
        server_pid = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            self._report(number, error.errno or 0, forked=False)
            pid = -1
        if pid == 0:
            self._become_child(descriptors, server_pid)
        for descriptor in descriptors:
            os.close(descriptor)
        if pid > 0:
            self._processes[pid] = number

    def _become_child(self, descriptors: list[int], server_pid: int) -> None:
        try:
            signal.set_wakeup_fd(-1)
            for descriptor in descriptors:  # `exec` does not close what was received unless one says so
                os.set_inheritable(descriptor, False)  # noqa: FBT003 - the library's way
            self._control.close()
            os.close(self._wake)
            os.close(self._woken)
            run_child(descriptors, self._functions, server_pid=server_pid)
        finally:  # nothing of a child may ever return into the server
            sys.excepthook(*sys.exc_info())
            os._exit(os.EX_SOFTWARE)

    def _reap(self) -> None:
        with suppress(BlockingIOError):
            while os.read(self._wake, 4096):
                pass
        while self._processes:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            _kill_rest(pid)
            self._report(self._processes.pop(pid), os.waitstatus_to_exitcode(status))

    def _report(self, number: int, status: int, *, forked: bool = True) -> None:
        with suppress(OSError):  # a worker that has gone is seen where its orders are read
            self._control.sendall(REPORT.pack(number, status, forked))


def _kill(pid: int, number: int) -> None:
    """Send a signal to a group; to its leader alone while that has not become one."""
    with suppress(ProcessLookupError, PermissionError):
        try:
            os.killpg(pid, number)
        except ProcessLookupError:
            os.kill(pid, number)


def _kill_rest(leader_pid: int) -> None:
    """Kill what the ended leader of a group has left running in it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader_pid, signal.SIGKILL)


def _pipe() -> tuple[int, int]:
    ends = os.pipe()
    for end in ends:
        os.set_blocking(end, False)
    return ends


def main(control_fd: str, *modules: str) -> None:
    """Import the modules and serve."""
    for number in (
        signal.SIGINT,
        signal.SIGTERM,
    ):  # it ends when its worker does, and that may have work to finish
        signal.signal(number, signal.SIG_IGN)
    control = socket.socket(fileno=int(control_fd))
    functions = handlers_in(importlib.import_module(name) for name in modules)
    others = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    if others:
        sys.stderr.write(_THREADS.format(", ".join(others)))
    gc.collect()
    gc.freeze()  # children share what is there now, as long as nobody writes to it
    ForkServer(control, functions).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
