"""The API's port is looked after before anything starts."""

import os
import socket
import sys

import pytest

from app.ports import PortUnavailable, reserved_port


def test_free_port_is_picked_for_zero() -> None:
    with reserved_port("127.0.0.1", 0) as port, socket.socket() as api:
        api.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        api.bind(("127.0.0.1", port))
        api.listen()
        with socket.create_connection(("127.0.0.1", port)) as client:
            accepted, address = api.accept()
            accepted.close()
            assert address == client.getsockname()


def test_holder_of_a_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        with pytest.raises(PortUnavailable, match=rf"port {port} .* is held by pid {os.getpid()} \(.+\)"):
            reserved_port("127.0.0.1", port).__enter__()


def test_port_that_another_serve_shares_with_its_processes_is_held() -> None:
    with socket.socket() as shared:
        shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        shared.bind(("127.0.0.1", 0))
        shared.listen()
        with pytest.raises(PortUnavailable, match="ONTHEDOT_PORT"):
            reserved_port("127.0.0.1", shared.getsockname()[1]).__enter__()


@pytest.mark.skipif(sys.platform != "linux", reason="the reservation lasts on Linux only")
def test_reservation_keeps_out_others_before_the_api_listens() -> None:
    with reserved_port("127.0.0.1", 0) as port, pytest.raises(PortUnavailable):
        reserved_port("127.0.0.1", port).__enter__()


def test_address_that_is_not_this_machines_is_named() -> None:
    with pytest.raises(PortUnavailable, match=r"cannot listen on 192\.0\.2\.1"):
        reserved_port("192.0.2.1", 0).__enter__()
