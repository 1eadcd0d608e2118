"""Which server is the primary: of several hosts, or behind one address that moves.

A standby that is promoted begins a new timeline. The old primary, unless somebody has shot it, goes on answering as
if nothing had been: a zombie. So every connection tells its timeline before anybody uses it, and a process never goes
back to an older one than it has seen; what it still has there is cut off.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import asyncpg

from app.db.hosts import Host, hosts_in

log = logging.getLogger(__name__)

ANSWER_SECONDS = 3.0
"""How long one of several hosts has to let a connection in and tell its timeline: the others are waiting."""
LOOK_SECONDS = 1.0
"""How often all of several hosts are asked, and how long each has to answer."""

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
_TIMELINE = """
    SELECT CASE WHEN pg_is_in_recovery() THEN 0
                ELSE ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int8 END"""
"""0: a standby. A checkpoint's timeline lags behind a promotion; that of the log which is being written does not."""

_NO_ANSWER = (
    OSError,
    TimeoutError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)


class NoPrimary(ConnectionError):
    """None of several hosts is a primary that may be used now."""


class OldPrimary(ConnectionError):
    """The server is on a timeline that has been left."""


class Promoted(ConnectionError):
    """The server is on a newer timeline than this process is bound to."""


class _Answer(NamedTuple):
    host: Host
    connection: Connection
    timeline: int


class Primary:
    """Finds the primary of a DSN. Everybody in a process who connects by the same DSN shares one, in any thread."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._hosts = hosts_in(dsn)
        self._lock = threading.Lock()
        self._found: Host | None = None
        self._bound_to: int | None = None
        self._open: WeakKeyDictionary[Connection, tuple[int, asyncio.AbstractEventLoop]] = WeakKeyDictionary()
        self._lookouts: dict[Host, Connection] = {}
        self._when_promoted: list[Callable[[], object]] = []
        self.timeline = 0
        """The newest that this process has seen; it only grows. 0: none yet."""

    @property
    def is_chosen(self) -> bool:
        """Whether there are several hosts, so that `look` finds out what open connections do not tell."""
        return len(self._hosts) > 1

    def bind(self) -> int:
        """Open no connection to another timeline from now on, and return this one: leases and tokens belong to it."""
        with self._lock:
            self._bound_to = self.timeline
            return self.timeline

    def when_promoted(self, call: Callable[[], object]) -> None:
        """Have something done when a newer timeline is seen; it is called in any thread."""
        self._when_promoted.append(call)

    async def connect(self, **options: Any) -> Connection:  # noqa: ANN401 - as asyncpg takes them
        """Open a connection to the primary.

        Raises what connecting raises, `NoPrimary` and `OldPrimary`; `Promoted` after `bind`.
        """
        answer = await (
            self._ask_for_primary(options) if self.is_chosen else self._ask(self._hosts[0], options)
        )
        self._note(answer.host, answer.timeline)
        try:
            self._admit(answer)
        except ConnectionError:
            answer.connection.terminate()
            raise
        return answer.connection

    async def look(self) -> bool:
        """Ask every host for its timeline: connections to a frozen or cut off primary do not tell of the next one."""
        await asyncio.gather(*map(self._look_at, self._hosts))
        return False

    def close(self) -> None:
        """Look no more."""
        for host in list(self._lookouts):
            self._lookouts.pop(host).terminate()

    def _admit(self, answer: _Answer) -> None:
        with self._lock:
            if 0 < answer.timeline < self.timeline:
                raise OldPrimary(
                    f"{answer.host} is on timeline {answer.timeline}, but {self.timeline} was seen before: an old "
                    "primary that was not shut down. If a backup was restored there, restart onthedot"
                )
            if self._bound_to is not None and answer.timeline > self._bound_to:
                raise Promoted(f"{answer.host} is on timeline {answer.timeline}, newer than {self._bound_to}")
            self._open[answer.connection] = answer.timeline, asyncio.get_running_loop()

    def _note(self, host: Host, timeline: int) -> None:
        """Remember the newest timeline, and leave older ones behind."""
        with self._lock:
            if timeline <= self.timeline:
                return
            before, self.timeline, self._found = self.timeline, timeline, host
            left = [(connection, its) for connection, its in self._open.items() if its[0] < timeline]
        if before:
            log.warning(
                "the database was promoted",
                extra={"event": "promoted", "host": str(host), "timeline": timeline, "before": before},
            )
        for connection, (_, loop) in left:
            with suppress(RuntimeError):  # a loop that is closed took its connections along
                loop.call_soon_threadsafe(connection.terminate)
        for call in self._when_promoted:
            call()

    async def _ask_for_primary(self, options: dict[str, Any]) -> _Answer:
        """Ask where the primary was last, else everywhere."""
        if self._found is not None:
            with suppress(*_NO_ANSWER):
                answer = await self._ask(self._found, options)
                if answer.timeline >= self.timeline:
                    return answer
                answer.connection.terminate()
        return await self._ask_everywhere(options)

    async def _ask_everywhere(self, options: dict[str, Any]) -> _Answer:
        """Return the answer of the newest timeline: no host alone can tell that it was not left behind."""
        asking = [asyncio.ensure_future(self._ask(host, options)) for host in self._hosts]
        chosen = None
        try:
            await asyncio.wait(asking)
            errors = [error for one in asking if (error := one.exception())]
            if len(errors) == len(asking):
                raise errors[0]
            newest = max((one.result() for one in asking if not one.exception()), key=attrgetter("timeline"))
            if not newest.timeline:
                raise NoPrimary(f"no host is a primary: {self._told(asking)}")
            chosen = newest
            return newest
        finally:
            for one in asking:
                one.cancel()
                one.add_done_callback(partial(_hang_up, but=chosen))

    async def _ask(self, host: Host, options: dict[str, Any]) -> _Answer:
        connection = await asyncpg.connect(self._dsn, **options | self._address_of(host))
        try:
            return _Answer(host, connection, await timeline_of(connection))
        except BaseException:
            connection.terminate()
            raise

    def _address_of(self, host: Host) -> dict[str, Any]:
        if not self.is_chosen:
            return {}  # as the DSN says it
        return {
            "host": host.name,
            "port": host.port,
            "target_session_attrs": "any",
            "timeout": ANSWER_SECONDS,
        }

    async def _look_at(self, host: Host) -> None:
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                lookout = self._lookouts.get(host)
                if lookout is None or lookout.is_closed():
                    answer = await self._ask(
                        host, {"server_settings": {"application_name": "onthedot lookout"}}
                    )
                    lookout = self._lookouts[host] = answer.connection
                self._note(host, await timeline_of(lookout))
        except _NO_ANSWER:
            if dead := self._lookouts.pop(host, None):
                dead.terminate()

    def _told(self, asked: "list[asyncio.Task[_Answer]]") -> str:
        told = (
            f"{host}: {one.exception() or 'a standby'}" for host, one in zip(self._hosts, asked, strict=True)
        )
        return "; ".join(told)


async def timeline_of(session: "Connection | asyncpg.Pool[asyncpg.Record]") -> int:
    """Return the timeline of a session's server; 0: it is a standby."""
    number: int = await session.fetchval(_TIMELINE, timeout=ANSWER_SECONDS)
    return number


@cache
def primary_of(dsn: str) -> Primary:
    """Return what this process knows of the primary of a DSN."""
    return Primary(dsn)


async def connect_to_primary(dsn: str | None = None, **options: Any) -> Connection:  # noqa: ANN401 - as asyncpg takes them
    """Open a connection as asyncpg's `connect` does, but to the primary. Raises what `Primary.connect` raises."""
    return await primary_of(dsn or "").connect(**options)


def _hang_up(one: "asyncio.Task[_Answer]", *, but: _Answer | None) -> None:
    """Close a connection that was not chosen."""
    if not one.cancelled() and one.exception() is None and one.result() is not but:
        one.result().connection.terminate()
