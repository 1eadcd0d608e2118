"""What has changed is told to open pages: all of it, once, and never by somebody who cannot know."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TypeVar

import httpx
import pytest

from app.db.pools import Pool
from app.ui import change_feed
from app.ui.change_feed import EVERYTHING, MOST_STREAMS, ChangeFeed
from app.ui.sessions import COOKIE_NAME
from tests.factories import make_execution, make_finished, make_job
from tests.polling import eventually
from tests.ui.conftest import Site

pytestmark = pytest.mark.asyncio(loop_scope="module")
T = TypeVar("T")


@pytest.fixture(autouse=True)
def short_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let streams beat often."""
    monkeypatch.setattr(change_feed, "BEAT_SECONDS", 0.05)


async def test_a_page_is_first_told_of_everything(site: Site) -> None:
    """Something may have changed between its rendering and its stream."""
    pages = site.change_feed.watch("session")

    assert await _after_a_look(site.change_feed, pages) == EVERYTHING


async def _change_a_job(pool: Pool) -> None:
    await make_job(pool)
    await pool.execute("UPDATE onthedot.jobs SET name = 'changed'")


async def _end(pool: Pool) -> None:
    await pool.execute("DELETE FROM onthedot.executions WHERE status = 'RUNNING'")
    await make_finished(pool)


CHANGES = {
    "an execution is made": (make_execution, {"executions"}),
    "an execution ends": (_end, {"executions"}),
    "an attempt fails": (
        lambda pool: pool.execute(
            "UPDATE onthedot.executions SET status = 'RETRYING', worker_id = NULL, lease_expires_at = NULL,"
            " claimed_at = NULL WHERE status = 'RUNNING'"
        ),
        {"executions"},
    ),
    "a job is changed": (_change_a_job, {"definitions"}),
    "a worker starts": (
        lambda pool: pool.execute(
            "INSERT INTO onthedot.workers (worker_id, host, pid, version, queues, slots)"
            " VALUES (gen_random_uuid(), 'here', 1, '0', '{}', 1)"
        ),
        {"workers"},
    ),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_change_is_told_by_its_topic(site: Site, change: str) -> None:
    await make_execution(site.pool, status="RUNNING")
    pages = site.change_feed.watch("session")
    await _after_a_look(site.change_feed, pages)
    make, topics = CHANGES[change]
    await make(site.pool)

    assert await _after_a_look(site.change_feed, pages) == topics


async def test_while_nothing_changes_there_are_beats(site: Site) -> None:
    pages = site.change_feed.watch("session")
    await _after_a_look(site.change_feed, pages)

    assert await _after_a_look(site.change_feed, pages) == frozenset()


async def test_who_cannot_look_does_not_say_that_nothing_has_changed(site: Site) -> None:
    pages = site.change_feed.watch("session")
    await _after_a_look(site.change_feed, pages)
    silent = asyncio.ensure_future(anext(pages))

    assert await _stays_silent(silent)


async def test_the_version_tells_whether_what_was_read_still_holds(site: Site) -> None:
    pages = site.change_feed.watch("session")
    await _after_a_look(site.change_feed, pages)
    before = site.change_feed.version
    await _after_a_look(site.change_feed, pages)
    unchanged = site.change_feed.version
    await make_execution(site.pool)
    await _after_a_look(site.change_feed, pages)

    assert unchanged == before < site.change_feed.version


async def test_nobody_looks_while_nobody_watches() -> None:
    source = _Counted()
    feed = ChangeFeed(source)
    await feed.tick()
    unwatched = source.looks
    pages = feed.watch("session")
    await _after_a_look(feed, pages)
    watched = source.looks
    await pages.aclose()  # type: ignore[attr-defined]
    await feed.tick()

    assert unwatched == 0 < watched == source.looks


async def test_closing_ends_every_stream_and_lets_none_begin() -> None:
    feed = ChangeFeed(_Counted())
    running = asyncio.ensure_future(_collect(feed.watch("session")))
    await feed.tick()
    feed.close()

    await asyncio.wait_for(running, 5)
    assert await _collect(feed.watch("session")) == []


async def test_a_session_has_so_many_streams_and_each_that_ends_makes_room() -> None:
    feed = ChangeFeed(_Counted())
    streams = [feed.watch("session") for _ in range(MOST_STREAMS)]
    for stream in streams:
        await _after_a_look(feed, stream)
    full, other = feed.is_full("session"), feed.is_full("another")
    await streams[0].aclose()  # type: ignore[attr-defined]

    assert (full, other, feed.is_full("session")) == (True, False, False)


async def test_the_stream_is_for_those_who_are_logged_in(visitor: httpx.AsyncClient) -> None:
    answer = await visitor.get("/ui/events", headers={"Accept": "text/event-stream"})

    assert answer.status_code in {303, 401}


async def test_the_stream_ends_with_its_session(site: Site, ada: httpx.AsyncClient) -> None:
    """httpx collects a stream: it returns because the stream ends."""
    stream = asyncio.ensure_future(ada.get("/ui/events"))
    await eventually(lambda: _watches(site.change_feed, ada.cookies[COOKIE_NAME]))
    await site.change_feed.tick()
    await site.pool.execute("DELETE FROM onthedot.sessions")
    answer = await _ticking(site.change_feed, stream)

    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.text.startswith("event: hello\r\ndata: \r\nretry: ")
    assert "event: changed\r\ndata: definitions executions workers\r\n" in answer.text


async def _watches(feed: ChangeFeed, session: str) -> bool:
    return session in feed._of_session


class _Counted:
    looks = 0

    async def marks(self) -> dict[str, str]:
        self.looks += 1
        return dict.fromkeys(EVERYTHING, "0")


async def _after_a_look(feed: ChangeFeed, pages: AsyncIterator[frozenset[str]]) -> frozenset[str]:
    """Return what a page is told after the next look."""
    return await _ticking(feed, asyncio.ensure_future(anext(pages)))


async def _ticking(feed: ChangeFeed, told: "asyncio.Future[T]") -> T:
    """Return what comes, looking again and again, as the server's loop does."""
    async with asyncio.timeout(5):
        while not told.done():
            await asyncio.sleep(0)  # so that it watches
            await feed.tick()
            await asyncio.wait({told}, timeout=0.01)
    return told.result()


async def _stays_silent(told: "asyncio.Future[frozenset[str]]") -> bool:
    await asyncio.wait({told}, timeout=0.3)
    silent = not told.done()
    told.cancel()
    with suppress(asyncio.CancelledError):
        await told
    return silent


async def _collect(pages: AsyncIterator[frozenset[str]]) -> list[frozenset[str]]:
    return [topics async for topics in pages]
