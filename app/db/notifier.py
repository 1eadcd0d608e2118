"""Waking each other: one sender and one listener a process, over LISTEN and NOTIFY.

A commit that carries NOTIFY takes a lock that all others wait for (8,000 inserting transactions a second fall to
2,100). So hints are gathered, and sent in statements of their own after the commit. They may get lost: whoever
listens also looks by itself within a second.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Iterable
from uuid import UUID

from app.db.pools import Connection, Pool, connect
from app.domain.hints import Hints, Ready, read_hints

log = logging.getLogger(__name__)

READY = "onthedot_ready"
"""Hints for workers."""
SCHEDULES = "onthedot_schedules"
"""A schedule is new or has changed: for materializers."""
CANCELS = "onthedot_cancels"
"""Ids of executions that somebody wants to stop: for the worker that runs them."""
SUSPECTS = "onthedot_suspects"
"""Executions are due that must run alone: for workers that may begin a process for them."""
ECHO = "onthedot_echo"
SEND_EVERY_SECONDS = 0.005
ECHO_EVERY_SECONDS = 10.0
ECHO_WITHIN_SECONDS = 5.0


class HintSender:
    """Sends hints at once, or gathered where the last ones went less than 5 ms ago."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._hints = Hints()
        self._bare: set[str] = set()
        """Channels on which a notification says all there is to say."""
        self._cancels: list[UUID] = []
        self._last_sent = 0.0
        self._sending: asyncio.Task[None] | None = None

    def announce(self, places: Iterable[Ready]) -> None:
        """Tell workers where there is work. To be called after the commit."""
        self._hints.add(places)
        self._send_soon()

    def announce_schedules(self) -> None:
        """Tell materializers that there is something to plan. To be called after the commit."""
        self._bare.add(SCHEDULES)
        self._send_soon()

    def announce_suspects(self) -> None:
        """Tell workers that something is due that must run alone."""
        self._bare.add(SUSPECTS)
        self._send_soon()

    def announce_cancel(self, execution_id: UUID) -> None:
        """Tell the worker that runs it that an execution shall stop. To be called after the commit."""
        self._cancels.append(execution_id)
        self._send_soon()

    async def close(self) -> None:
        """Send what is left."""
        while self._sending is not None:
            await self._sending

    def _send_soon(self) -> None:
        if self._sending is None and (self._hints or self._bare or self._cancels):
            self._sending = asyncio.get_running_loop().create_task(self._send())

    async def _send(self) -> None:
        try:
            await asyncio.sleep(max(0.0, self._last_sent + SEND_EVERY_SECONDS - time.monotonic()))
            self._last_sent = time.monotonic()
            messages = self._take_messages()
            await self._pool.executemany("SELECT pg_notify($1, $2)", messages)
        except Exception:  # workers will look by themselves
            log.warning("hints were not sent", exc_info=True, extra={"event": "hints_not_sent"})
        finally:
            self._sending = None
            self._send_soon()

    def _take_messages(self) -> list[tuple[str, str]]:
        messages = [(READY, payload) for payload in self._hints.take_payloads()]
        messages += [(channel, "") for channel in self._bare]
        messages += [(CANCELS, str(execution_id)) for execution_id in self._cancels]
        self._bare, self._cancels = set(), []
        return messages


class HintListener:
    """Listens, and makes sure that it hears: a half-open socket or a pooler delivers nothing and says nothing.

    `tick` notifies itself; where the echo fails to come it connects anew. `hears` tells how it stands.
    """

    def __init__(
        self,
        dsn: str,
        *,
        on_ready: Callable[[list[Ready]], None] | None = None,
        on_schedules: Callable[[], None] | None = None,
        on_suspects: Callable[[], None] | None = None,
        on_cancels: Callable[[list[UUID]], None] | None = None,
    ) -> None:
        self._dsn = dsn
        self._heard_of: dict[str, Callable[[str], None]] = {ECHO: self._heard_echo}
        """What is done with what is heard, by channel."""
        if on_ready is not None:
            self._heard_of[READY] = lambda payload: on_ready(list(read_hints(payload)))
        if on_schedules is not None:
            self._heard_of[SCHEDULES] = lambda _payload: on_schedules()
        if on_suspects is not None:
            self._heard_of[SUSPECTS] = lambda _payload: on_suspects()
        if on_cancels is not None:
            self._heard_of[CANCELS] = lambda payload: on_cancels(_ids(payload))
        self._connection: Connection | None = None
        self._echo = asyncio.Event()
        self._token = secrets.token_hex(8)
        self._deaf = False
        self.hears = False

    async def tick(self) -> bool:
        """Connect where needed and check the echo."""
        try:
            connection = await self._connected()
            self._echo.clear()
            async with asyncio.timeout(ECHO_WITHIN_SECONDS):
                await connection.execute("SELECT pg_notify($1, $2)", ECHO, self._token)
                await self._echo.wait()
        except BaseException:
            self._report(hears=False)
            self._drop()
            raise
        self._report(hears=True)
        return False

    async def close(self) -> None:
        """Listen no more."""
        self._drop()

    async def _connected(self) -> Connection:
        if self._connection is None or self._connection.is_closed():
            self._connection = await connect(self._dsn, application_name="onthedot listener")
            for channel in self._heard_of:
                await self._connection.add_listener(channel, self._heard)
        return self._connection

    def _heard(self, _connection: object, _pid: int, channel: str, payload: object) -> None:
        self._heard_of[channel](str(payload))

    def _heard_echo(self, payload: str) -> None:
        if payload == self._token:
            self._echo.set()

    def _report(self, *, hears: bool) -> None:
        if not hears and not self._deaf:
            log.warning(
                "this process hears no notifications; it looks by itself every second",
                extra={"event": "listener", "hears": False},
            )
        elif hears and self._deaf:
            log.info("this process hears notifications again", extra={"event": "listener", "hears": True})
        self.hears, self._deaf = hears, not hears

    def _drop(self) -> None:
        """Throw the connection away; after a cancelled or failed statement it is not to be trusted."""
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None


def _ids(payload: str) -> list[UUID]:
    """Read an id; what is none is passed over: anybody may notify."""
    try:
        return [UUID(payload)]
    except ValueError:
        return []
