"""The HTTP session of a worker process, and the guard that keeps it away from private addresses."""

import errno
import socket

import aiohttp

from app import __version__
from app.domain.addresses import is_public_address

CONNECT_TIMEOUT_SECONDS = 10.0
DNS_CACHE_SECONDS = 10

# The shape of `aiohappyeyeballs.AddrInfoType`: family, type, protocol, canonical name, socket address.
AddrInfo = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[str | int, ...]]


class AddressRefused(OSError):
    """The address is private or reserved."""

    def __init__(self) -> None:
        # Always the same text: only then does the connector keep our type when several addresses fail.
        super().__init__(errno.EACCES, "private addresses are refused")


def open_public_socket(addr_info: AddrInfo) -> socket.socket:
    """Return a socket for an address that the connector is about to connect to.

    aiohttp calls this with the numeric address itself, for names (after the look-up) and for literal IP
    addresses (which never see a resolver). So a name that changes its answer between check and use gains
    nothing. Raises `AddressRefused`.
    """
    family, kind, protocol, _, address = addr_info
    if not is_public_address(str(address[0])):
        raise AddressRefused
    return socket.socket(family, kind, protocol)


def open_http_session(*, allow_private_targets: bool) -> aiohttp.ClientSession:
    """Return the session for all HTTP targets of this process. Needs the running loop; close it at the end.

    It takes no proxy from the environment (a proxy would connect in our place, past the guard), keeps no
    cookies between executions, bounds only connecting, and opens as many connections as there are requests.
    """
    connector = aiohttp.TCPConnector(
        limit=0,
        ttl_dns_cache=DNS_CACHE_SECONDS,
        socket_factory=None if allow_private_targets else open_public_socket,
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_TIMEOUT_SECONDS),
        headers={"User-Agent": f"onthedot/{__version__}"},
        trust_env=False,
    )
