"""The TCP port that the API is to have, looked after before anything else starts."""

import errno
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil

PATIENCE_SECONDS = 2.0
"""How long an API process whose supervisor was killed may take to leave the port."""
SHOWN_COMMAND_LENGTH = 100

Address = tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]
"""As `socket.getaddrinfo` gives it and `bind` takes it."""


class PortUnavailable(RuntimeError):
    """Nobody can listen at the address; the message says who does and what helps."""


@contextmanager
def reserved_port(host: str, port: int) -> Iterator[int]:
    """Check that the port is free, and yield its number (a free one's if `port` is 0).

    On Linux it stays reserved for processes of this user that share it (`SO_REUSEPORT`, as granian does).
    Raises `PortUnavailable`.
    """
    family, address = _resolve(host, port)
    with socket.socket(family, socket.SOCK_STREAM) as reservation:
        with _past_connections_allowed(reservation):
            _bind(reservation, address, host=host, port=port)
        number = int(reservation.getsockname()[1])
        if sys.platform == "linux":
            # Only now: bound with it, the socket would share the port with another `serve` of this user. It
            # never listens, so the kernel gives it no connections; elsewhere that is not certain.
            reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        else:
            reservation.close()
        yield number


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, Address]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        raise PortUnavailable(f"ONTHEDOT_HOST={host!r} is not an address: {error.strerror}") from None
    family, _, _, _, address = found[0]
    return family, address


@contextmanager
def _past_connections_allowed(probe: socket.socket) -> Iterator[None]:
    """Bind past connections of the last minute (TIME_WAIT), as a restart must; not past a live listener.

    Only while binding: left on, two `serve`s that start together could both get the port.
    """
    if sys.platform == "win32":  # where it means something else
        yield
        return
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        yield
    finally:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)


def _bind(probe: socket.socket, address: Address, *, host: str, port: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return probe.bind(address)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise PortUnavailable(f"cannot listen on {host} port {port}: {error.strerror}") from None
            if time.monotonic() > deadline:
                raise PortUnavailable(
                    f"port {port} on {host} is held by {_holder(port)}: stop it, or set ONTHEDOT_PORT"
                ) from None
        time.sleep(0.05)


def _holder(port: int) -> str:
    """Name the process that listens on `port`, as far as this user may know it."""
    with suppress(psutil.Error):
        for connection in psutil.net_connections("tcp"):
            if connection.laddr and connection.laddr.port == port and connection.status == psutil.CONN_LISTEN:
                if connection.pid is None:
                    break
                command = " ".join(psutil.Process(connection.pid).cmdline())
                return f"pid {connection.pid} ({command[:SHOWN_COMMAND_LENGTH]})"
    return "another process"
