"""How long the dashboard's pages take in a house of 10,000 jobs and a million finished executions.

    make bench-ui                                   # or: python -m benchmarks.ui
    make bench-ui ARGS="--keep FOLDER --requests 30"  # seeds FOLDER once, measures it again and again

It starts onthedot with an embedded PostgreSQL of its own, seeds it, logs in as an operator and opens each page some
hundred times, one request after the other over loopback: every page in the navigation; of each the tabs, the second
page, and the page of its first row with the tabs of that; what the scripts ask for to keep rows up to date; and lists
narrowed to what is rare. Times are the client's, from sending a request to the last byte of its answer: they hold
everything that the server does. Beside them stands the processor time of a request, in the API process and in
PostgreSQL, which other work on the machine changes less. It fails where a list takes longer than 100 ms in more than
5 of 100 requests, where a page is larger than 15 kB compressed, and where one cannot be opened.
"""

import argparse
import asyncio
import gzip
import re
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import httpx

from app.db.pools import connect
from benchmarks.house import House, house, say
from benchmarks.seed import KEYS, seed

MOST_MS, MOST_BYTES = 100.0, 15_000
WARM_UP = 3
COUNTED_WITHIN_SECONDS = 240
NARROWED = (
    "/jobs?task_id=nothing",
    "/jobs?user_id=nobody",
    "/jobs?name=export+ledger+9998",
    "/jobs?state=paused&user_id=viv",
    "/executions?task_id=nothing",
    "/executions?queue=critical&status=FAILED",
    "/executions?user_id=viv&task_id=send_digest",
    "/executions?task_id=send_digest&status=CANCELLED",
    "/tasks?text=ledger",
)
"""Lists narrowed to what is rare, or is not there at all: what would have to be looked for the longest."""


class Page(HTMLParser):
    """The links of a page that lead on to what is measured."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: dict[str, list[str]] = {"nav": [], "tabs": [], "next": [], "row": [], "kept": []}
        self._within = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a link by what it is."""
        found = {name: value or "" for name, value in attrs}
        if tag == "nav":
            classes = found.get("class", "").split()
            self._within = "nav" if "bar-nav" in classes else "tabs" if "tabs" in classes else ""
        if tag == "a" and self._within:
            self.links[self._within].append(found["href"])
        if tag == "a" and found.get("rel") == "next":
            self.links["next"].append(found["href"])
        if "data-open" in found and "href" in found:
            self.links["row"].append(found["href"])
        if "changed:" in found.get("hx-trigger", "") and found.get("hx-get"):
            self.links["kept"].append(found["hx-get"])

    def handle_endtag(self, tag: str) -> None:
        """Leave a navigation."""
        if tag == "nav":
            self._within = ""


class Measured(NamedTuple):
    """What a page took."""

    kind: str
    address: str
    p50_ms: float
    p95_ms: float
    api_ms: float
    database_ms: float
    """Processor time of a request."""
    compressed: int
    """Bytes."""

    @property
    def flaw(self) -> str:
        """Return what is wrong with it, if anything."""
        slow = self.kind in {"list", "rows"} and self.p95_ms > MOST_MS
        return "SLOW" if slow else "LARGE" if self.compressed > MOST_BYTES else ""


class Bench:
    """Finds the pages and opens them."""

    def __init__(self, client: httpx.Client, house: House, requests: int) -> None:
        self._client = client
        self._house = house
        self._requests = requests
        self._seen: set[str] = set()

    def pages(self) -> Iterator[Measured]:
        """Measure every page, each kind of address once."""
        for address in Page(self._text("/")).links["nav"]:
            yield from self._list(address)
        for address in NARROWED:
            yield from self._measured("list", address)

    def _list(self, address: str) -> Iterator[Measured]:
        yield from self._measured("list", address)
        page = Page(self._text(address))
        for tab in page.links["tabs"]:
            yield from self._measured("list", tab)
        for further in page.links["next"][:1]:
            yield from self._measured("list", further)
        yield from self._kept(page)
        for row in page.links["row"][:1]:
            yield from self._detail(row)

    def _detail(self, address: str) -> Iterator[Measured]:
        yield from self._measured("page", address)
        page = Page(self._text(address))
        for tab in page.links["tabs"]:
            yield from self._measured("page", tab)
        yield from self._kept(page)

    def _kept(self, page: Page) -> Iterator[Measured]:
        for address in page.links["kept"]:
            yield from self._measured("rows", address)

    def _measured(self, kind: str, address: str) -> Iterator[Measured]:
        shown = _shown(address)
        if shown in self._seen:
            return
        self._seen.add(shown)
        for _ in range(WARM_UP):
            self._open(kind, address)
        before = self._house.spent()
        answers = [self._open(kind, address) for _ in range(self._requests)]
        spent = self._house.spent().since(before)
        api, database = (1000 * seconds / self._requests for seconds in (spent.api, spent.database))
        times = [took for took, _ in answers]
        size = len(gzip.compress(answers[0][1], 6))
        p95 = statistics.quantiles(times, n=20)[-1]
        yield Measured(kind, shown, statistics.median(times), p95, api, database, size)

    def _open(self, kind: str, address: str) -> tuple[float, bytes]:
        """Return how many milliseconds a page took, and what it is."""
        began = time.perf_counter()
        answer = self._client.get(address, headers={"HX-Request": "true"} if kind == "rows" else {})
        took = time.perf_counter() - began
        if answer.status_code != 200:
            raise SystemExit(f"{address} answered {answer.status_code}")
        return 1000 * took, answer.content

    def _text(self, address: str) -> str:
        return self._client.get(address).text


async def prepare(folder: Path, *, jobs: int, finished: int) -> None:
    """Seed the database of a folder unless that was done, and wait until all that has ended is counted."""
    dsn, seeded = (folder / "dsn").read_text("utf-8").strip(), folder / "seeded"
    if not seeded.exists():
        say(f"seeding {jobs:,} jobs and {finished:,} finished executions")
        await seed(dsn, jobs=jobs, finished=finished, days=7)
        seeded.touch()
    connection = await connect(dsn, application_name="bench")
    deadline = time.monotonic() + COUNTED_WITHIN_SECONDS
    while await connection.fetchval(
        "SELECT rolled_until < now() - interval '1 min' FROM onthedot.rollup_state"
    ):
        if time.monotonic() > deadline:
            raise SystemExit("what has ended was not counted in time")
        await asyncio.sleep(1)
    await connection.execute("VACUUM ANALYZE")
    await connection.close()


@contextmanager
def logged_in(url: str) -> Iterator[httpx.Client]:
    """Give the browser of an operator."""
    with httpx.Client(base_url=url, timeout=30, headers={"Accept": "text/html"}) as client:
        answer = client.post("/login", data={"key": KEYS["ada"][1]})
        if answer.status_code != 303:
            raise SystemExit(f"logging in was answered with {answer.status_code}")
        yield client


def report(results: Iterator[Measured]) -> int:
    """Print a line a page; return how many are not as they should be."""
    say(f"{'':5} {'page':60} {'p50 ms':>7} {'p95 ms':>7} {'api':>6} {'db':>6} {'kB gz':>6}")
    flaws = 0
    for one in results:
        shown = one.address if len(one.address) <= 60 else one.address[:59] + "…"
        times = f"{one.p50_ms:7.1f} {one.p95_ms:7.1f} {one.api_ms:6.1f} {one.database_ms:6.1f}"
        say(f"{one.kind:5} {shown:60} {times} {one.compressed / 1000:6.1f} {one.flaw}")
        flaws += bool(one.flaw)
    return flaws


def _shown(address: str) -> str:
    """Return an address without what differs from one run to the next: ids, cursors, lists of rows."""
    parts = urlsplit(address)
    path = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", parts.path)
    query = re.sub(r"(ids|cursor|top|task_id|job_id)=[^&]{24,}", r"\1=…", parts.query)
    return f"{path}?{query}" if query else path


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--finished", type=int, default=1_000_000)
    parser.add_argument("--requests", type=int, default=100, help="of each page, 2 or more")
    parser.add_argument("--keep", type=Path, help="a folder of a database that is kept and used again")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="onthedot-bench-") as temporary:
        folder = given.keep or Path(temporary)
        with house(folder, WORKER_PROCESSES="1") as running:
            asyncio.run(prepare(folder, jobs=given.jobs, finished=given.finished))
            with logged_in(running.url) as client:
                flaws = report(Bench(client, running, given.requests).pages())
    if flaws:
        raise SystemExit(f"{flaws} over {MOST_MS:.0f} ms or {MOST_BYTES / 1000:.0f} kB")


if __name__ == "__main__":
    main()
