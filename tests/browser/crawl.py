"""Every kind of page that links lead to."""

import re
from html.parser import HTMLParser
from urllib.parse import parse_qsl, urljoin, urlsplit

import httpx

_ID = re.compile(r"/[0-9a-f]{8}-[0-9a-f-]{27}(?=/|$)")
_NOT_PAGES = ("/api/", "/schema", "/static/", "/metrics", "/logout", "/login")
_NAMED = re.compile(r"^/(tasks|queues|workflow-runs/ID/steps)/(?!-/)[^/]+")


class _Links(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        address = dict(attrs).get("href")
        if tag == "a" and address:
            self.found.append(address)


def kind_of(address: str) -> str:
    """Return what an address is of: without which job, task or filter value."""
    parts = urlsplit(address)
    path = _NAMED.sub(r"/\1/NAME", _ID.sub("/ID", parts.path))
    return f"{path}?{'&'.join(sorted(name for name, _ in parse_qsl(parts.query)))}"


def crawl(client: httpx.Client) -> dict[str, str]:
    """Return an address of each kind of page, by the kind; each opened once, from `/` on.

    Of a list narrowed in many ways, one way at a time is enough.
    """
    found, waiting = {kind_of("/"): "/"}, ["/"]
    while waiting:
        here = waiting.pop()
        answer = client.get(here, headers={"Accept": "text/html"})
        assert answer.status_code == 200, f"{here} answered {answer.status_code}"
        if not answer.headers["content-type"].startswith("text/html"):
            del found[kind_of(here)]
            continue
        for link in _Links(answer.text).found:
            address = urljoin(here, link).partition("#")[0]
            if not address.startswith("/") or address.startswith(_NOT_PAGES):
                continue
            if kind_of(address) in found or "&" in kind_of(address):
                continue
            found[kind_of(address)] = address
            waiting.append(address)
    return found
