"""`onthedot serve`: see to the port, start the embedded PostgreSQL, migrate, supervise; stop in reverse."""

import asyncio
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from types import FrameType

from app.child_process import ChildFailed
from app.db.embedded import EmbeddedPostgres
from app.db.migrate import upgrade
from app.db.server_account import EmbeddedServerError
from app.loop import Loop
from app.ports import PortUnavailable, reserved_port
from app.server.bootstrap import Bootstrap, bootstrap
from app.settings import Settings
from app.startup import CannotStart
from app.supervisor import Supervisor, stop_signals

DATABASE_WATCH_SECONDS = 1.0
CLOSER_LOOK_EACH = 60
"""Looks at the database after which its process is looked up anew and old logs are dropped."""
WORKER_CONNECTIONS, API_CONNECTIONS, MAINTENANCE_CONNECTIONS = 5, 13, 5
"""What one process opens at most, without `transaction_connections`."""
LONE_CONNECTIONS = 16
"""What the processes open together that one worker may begin for executions that must run alone: four, each with one
for its statements, its leases, its notifications and its handler's transaction."""
SPARE_CONNECTIONS = 30
"""For `psql`, migrations, and processes that start while their predecessors' sessions end."""


def serve(settings: Settings) -> int:
    """Run all that `settings` ask for until a signal stops it; return the exit status.

    Prints the ready line and what a first visitor needs on standard output, and a failure on standard error.
    """
    try:
        with _signals_interrupt(), ExitStack() as stack:
            _serve(settings, stack)
    except KeyboardInterrupt:
        return 0
    except (ChildFailed, EmbeddedServerError, PortUnavailable, CannotStart) as error:
        sys.stderr.write(f"onthedot: {error}\n")
        return 1
    return 0


def connections_needed(settings: Settings) -> int:
    """Return how many database sessions the processes of `settings` may open together."""
    _, most_workers = settings.worker_processes
    return (
        most_workers * (WORKER_CONNECTIONS + settings.transaction_connections)
        + most_workers * LONE_CONNECTIONS
        + settings.api_processes * API_CONNECTIONS
        + MAINTENANCE_CONNECTIONS
        + SPARE_CONNECTIONS
    )


def _serve(settings: Settings, stack: ExitStack) -> None:
    if "api" in settings.roles:
        settings = replace(settings, port=stack.enter_context(reserved_port(settings.host, settings.port)))
    embedded = None
    if settings.database_url is None:
        embedded = EmbeddedPostgres(settings.data_dir, max_connections=connections_needed(settings))
        stack.callback(_stop, embedded)
        settings = replace(settings, database_url=embedded.start(), migrate_database_url=None)
    dsn = settings.database_url or ""
    upgrade(settings.migrate_database_url or dsn)
    prepared = asyncio.run(bootstrap(dsn, settings))
    announce = partial(_announce, settings, prepared, is_embedded=embedded is not None)
    asyncio.run(_supervise(settings, embedded=embedded, on_ready=announce))


async def _supervise(
    settings: Settings, *, embedded: EmbeddedPostgres | None, on_ready: Callable[[], None]
) -> None:
    watch = _DatabaseWatch(embedded) if embedded else None
    watching = [Loop("database-watch", watch.tick, interval_seconds=DATABASE_WATCH_SECONDS)] if watch else []
    for loop in watching:
        loop.start()
    try:
        await Supervisor(settings).run(on_ready=on_ready)
    finally:
        for loop in watching:
            await loop.stop()


class _DatabaseWatch:
    """One `tick`: start the embedded server again if it has died; now and then look closer."""

    def __init__(self, embedded: EmbeddedPostgres) -> None:
        self._embedded = embedded
        self._looks = 0

    async def tick(self) -> bool:
        self._looks += 1
        if self._looks % CLOSER_LOOK_EACH == 0 or not self._embedded.still_runs():
            await asyncio.to_thread(self._embedded.keep_running)
        return False


def _announce(settings: Settings, prepared: Bootstrap, *, is_embedded: bool) -> None:
    lines = ["onthedot ready"]
    if "api" in settings.roles:
        host = _visitable(settings.host)
        url = f"http://{host}:{settings.port}"
        lines = [f"onthedot ready {url}"]
        if prepared.login_token and (is_embedded or prepared.admin_key_generated or sys.stdout.isatty()):
            lines.append(f"log in once: {url}/login?token={prepared.login_token}")
    path = settings.data_dir / "admin.key"
    if prepared.admin_key_generated:
        lines.append(f"admin API key (kept in {path}): {prepared.admin_key_generated}")
    elif path.is_file():
        lines.append(f"the admin API key is kept in {path}")
    sys.stdout.write("\n".join([*lines, ""]))
    sys.stdout.flush()


def _visitable(host: str) -> str:
    """Return the host part of an address that a browser can open: a wildcard is none."""
    if host in {"0.0.0.0", "::"}:  # noqa: S104 - read, not bound
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def _stop(embedded: EmbeddedPostgres) -> None:
    """Stop the server, whatever signals come: nothing is left to hurry, and half stopped is worse."""
    for number in stop_signals():
        signal.signal(number, signal.SIG_IGN)
    embedded.stop()


@contextmanager
def _signals_interrupt() -> Iterator[None]:
    """Make every stop signal raise `KeyboardInterrupt`, as SIGINT does, while this thread starts things."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in stop_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
