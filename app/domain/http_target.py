"""`http:METHOD URL`: the execution handler that sends a request. What may be saved, and what not."""

import ipaddress
import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

import msgspec

from app.domain.addresses import is_public_address
from app.domain.errors import InvalidInput

PREFIX: Final = "http:"
METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
_POINTER = "/execution_handler"
_FORM = "write http:METHOD URL, for example http:POST https://example.com/run"
_PRIVATE = "HTTP targets may not reach private addresses unless ONTHEDOT_ALLOW_PRIVATE_TARGETS is set"
# Some parsers read a backslash as a slash, others as text; the rest cannot stand in a request line.
_UNUSABLE = re.compile(r"[\x00-\x20\x7f-\xa0\\\u2028\u2029\ud800-\udfff]")
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+", re.IGNORECASE)


class HttpTarget(msgspec.Struct, frozen=True):
    """Where an `http:` handler sends its request: an absolute http(s) URL without user or fragment."""

    method: str
    url: str

    def __str__(self) -> str:
        """Name the target for messages: without the query, which may hold secrets."""
        return f"{self.method} {self.url.partition('?')[0]}"


def parse_http_target(text: str, *, allow_private: bool) -> HttpTarget:
    """Read the `execution_handler` text `http:METHOD URL`, or what follows its `http:`.

    Unless `allow_private`, a host that is a private address by its text is refused here; names are checked
    when connecting, on the address that they then have. Raises `InvalidInput` with the pointer
    `/execution_handler` and the remedy.
    """
    method, _, url = text.removeprefix(PREFIX).strip(" ").partition(" ")
    url = url.lstrip(" ")
    if method not in METHODS:
        raise _refusal(f"the method {method[:40]!a} is not one of {', '.join(METHODS)}; {_FORM}")
    if not url:
        raise _refusal(f"the URL is missing; {_FORM}")
    if (bad := _UNUSABLE.search(url)) is not None:
        raise _refusal(f"the URL holds {bad.group()!a}; percent-encode it (a space is %20)")
    _check_host(_checked_parts(url), allow_private=allow_private)
    return HttpTarget(method, url)


def _refusal(detail: str) -> InvalidInput:
    return InvalidInput(detail, pointer=_POINTER, code="invalid_handler")


def _checked_parts(url: str) -> SplitResult:
    parts = _split(url)
    if parts.scheme not in {"http", "https"}:
        raise _refusal("the URL must begin with http:// or https://")
    if "@" in parts.netloc:
        raise _refusal("the URL holds a user or password, which would be shown to every reader; leave it out")
    if not parts.hostname:
        raise _refusal("the URL has no host; write http://HOST/PATH")
    if "#" in url:
        raise _refusal("the URL holds a fragment (#...), which is never sent; write a literal # as %23")
    return parts


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _refusal("the URL cannot be read: check its host and port (1 to 65535)") from None
    if port == 0:
        raise _refusal("the port must be a number from 1 to 65535")
    return parts


def _check_host(parts: SplitResult, *, allow_private: bool) -> None:
    host = (parts.hostname or "").rstrip(".")
    if "[" in parts.netloc or _ends_in_number(host):
        _check_address(host, allow_private=allow_private)
    elif not allow_private and (host == "localhost" or host.endswith(".localhost")):
        raise _refusal(f"the host {host[:80]!a} is this machine; {_PRIVATE}")


def _ends_in_number(host: str) -> bool:
    """Tell whether a URL parser takes the host for an IPv4 address (WHATWG URL, "ends in a number")."""
    return _NUMBER.fullmatch(host.rpartition(".")[2]) is not None


def _check_address(host: str, *, allow_private: bool) -> None:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        raise _refusal(f"the host {host[:80]!a} is not a full IP address; write it out") from None
    if not allow_private and not is_public_address(host):
        raise _refusal(f"the host {host} is a private or reserved address; {_PRIVATE}")
