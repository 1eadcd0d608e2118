"""The hosts that a DSN names."""

from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

DEFAULT_PORT = 5432


class Host(NamedTuple):
    """Where a server listens: a name, an address or a socket's folder, and a port."""

    name: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}:{self.port}"


def hosts_in(dsn: str) -> tuple[Host, ...]:
    """Return the hosts of a DSN as libpq reads it: before the path, or as `host` and `port` after it."""
    parts = urlsplit(dsn)
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    places = unquote(parts.netloc.rpartition("@")[2] or query.get("host", "")).split(",")
    ports = [int(port) for port in query.get("port", "").split(",") if port] or [DEFAULT_PORT]
    return tuple(
        _host(place, default=ports[number] if len(ports) > 1 else ports[0])
        for number, place in enumerate(places)
    )


def _host(place: str, *, default: int) -> Host:
    if place.startswith("["):
        name, _, port = place[1:].partition("]")
        port = port.removeprefix(":")
    else:
        name, _, port = place.partition(":")
    return Host(name, int(port) if port else default)
