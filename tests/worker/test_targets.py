"""The guard on real connections: what counts is the address, however the URL spells it."""

import asyncio
import socket
from collections.abc import AsyncIterator

import aiohttp
import pytest

from app.worker.handlers.targets import AddressRefused, open_http_session, open_public_socket


class CountingServer:
    """Counts the connections it gets on 127.0.0.1 and, where there is IPv6, ::1."""

    def __init__(self) -> None:
        self.connections = 0
        self.port = 0

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
        await writer.drain()
        writer.close()


def has_ipv6_loopback() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.fixture
async def server() -> AsyncIterator[CountingServer]:
    counting = CountingServer()
    first = await asyncio.start_server(counting.talk, "127.0.0.1", 0)
    counting.port = first.sockets[0].getsockname()[1]
    listeners = [first]
    if has_ipv6_loopback():
        listeners.append(await asyncio.start_server(counting.talk, "::1", counting.port))
    yield counting
    for listener in listeners:
        listener.close()
        await listener.wait_closed()


async def get(host: str, port: int, *, allow_private_targets: bool) -> str:
    async with (
        open_http_session(allow_private_targets=allow_private_targets) as session,
        session.get(f"http://{host}:{port}/") as answer,
    ):
        return await answer.text()


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.255.255.254",
        "0.0.0.0",  # noqa: S104 - an address to connect to
        "localhost",
        "LOCALHOST",
        "0x7f.1",
        "0x7f000001",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[2002:7f00:1::]",
        "[fe80::1%251]",
    ],
)
async def test_a_private_address_is_refused_before_anything_is_sent(
    server: CountingServer, host: str
) -> None:
    with pytest.raises(aiohttp.ClientConnectorError) as caught:
        await get(host, server.port, allow_private_targets=False)
    assert isinstance(caught.value.os_error, AddressRefused)
    assert server.connections == 0


async def test_the_absolute_name_of_this_machine_is_no_way_around(server: CountingServer) -> None:
    with pytest.raises(aiohttp.ClientConnectorError):  # refused, or unknown: resolvers differ on the dot
        await get("localhost.", server.port, allow_private_targets=False)
    assert server.connections == 0


@pytest.mark.parametrize("host", ["127.1", "2130706433", "017700000001", "0177.0.0.1"])
async def test_short_and_numeric_spellings_do_not_get_as_far_as_an_address(
    server: CountingServer, host: str
) -> None:
    for allowed in (False, True):
        with pytest.raises(aiohttp.InvalidURL):
            await get(host, server.port, allow_private_targets=allowed)
    assert server.connections == 0


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0x7f.1"])
async def test_private_addresses_are_reached_where_they_are_allowed(
    server: CountingServer, host: str
) -> None:
    assert await get(host, server.port, allow_private_targets=True) == "hi"
    assert server.connections == 1


async def test_a_name_that_changes_its_answer_gains_nothing(
    server: CountingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding: whatever a name resolves to when the connection is made is what is judged."""
    answers = [("127.0.0.1", server.port), ("10.0.0.1", server.port)]

    def resolve(*_: object, **__: object) -> list[tuple[object, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address) for address in answers]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(aiohttp.ClientConnectorError) as caught:
        await get("public-an-instant-ago.example", server.port, allow_private_targets=False)
    assert isinstance(caught.value.os_error, AddressRefused)
    assert server.connections == 0


async def test_a_proxy_of_the_environment_is_not_used(
    server: CountingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert await get("127.0.0.1", server.port, allow_private_targets=True) == "hi"


def test_a_public_address_gets_its_socket() -> None:
    info = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("93.184.215.14", 80))
    with open_public_socket(info) as opened:
        assert opened.family == socket.AF_INET
