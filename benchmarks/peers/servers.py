"""The server under a system: each measurement gets a new one, all of them with the same settings."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.db.embedded import EmbeddedPostgres
from app.db.server_settings import default_settings
from benchmarks.house import house
from benchmarks.peers.install import NotRun
from benchmarks.peers.systems import ONTHEDOT, System

CONNECTIONS = 200
SETTINGS = {"fsync": "on", "synchronous_commit": "on"}
"""Said although they are PostgreSQL's own: all of it stands or falls with them."""
REDIS_SECONDS = 10
TASKS = "benchmarks.peers.onthedot_peer"


def settings_shown() -> str:
    """Return the settings of PostgreSQL that matter here."""
    known = default_settings(max_connections=CONNECTIONS) | SETTINGS
    names = ("shared_buffers", "max_wal_size", "checkpoint_timeout", "jit", "fsync", "synchronous_commit")
    return ", ".join(f"{name} {known[name]}" for name in names)


@contextmanager
def served(system: System, folder: Path) -> Iterator[dict[str, str]]:
    """Start what a system needs in a new folder; give the environment for its processes."""
    folder.mkdir(parents=True)
    folder.chmod(0o755)  # as root the embedded server runs as a user of its own
    if not system.unfinished:
        with _redis(folder) as dsn:
            yield _environment(folder, dsn)
        return
    (
        folder / "log"
    ).touch()  # `house` writes there: where there is a file, PostgreSQL makes no link to its own
    server = EmbeddedPostgres(folder, max_connections=CONNECTIONS, settings=SETTINGS)
    dsn = server.start()
    try:
        if system is ONTHEDOT:
            with _house(folder, dsn) as own:
                yield _environment(folder, dsn) | own
        else:
            yield _environment(folder, dsn)
    finally:
        server.stop()


def _environment(folder: Path, dsn: str) -> dict[str, str]:
    ours = ("ONTHEDOT_", "PYTHON", "VIRTUAL_ENV")
    others = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return others | {"PEER_FOLDER": str(folder), "PEER_DSN": dsn}


@contextmanager
def _house(folder: Path, dsn: str) -> Iterator[dict[str, str]]:
    """Run onthedot without its workers, which are started as those of the others are."""
    settings = {"DATABASE_URL": dsn, "TASK_MODULES": TASKS}
    with house(folder, ROLES="api,materializer", **settings) as running:
        own = {f"ONTHEDOT_{name}": value for name, value in settings.items()}
        yield own | {"ONTHEDOT_DATA_DIR": str(folder), "PEER_URL": running.url, "PEER_KEY": running.key}


@contextmanager
def _redis(folder: Path) -> Iterator[str]:
    program = shutil.which("redis-server")
    if program is None:
        raise NotRun("there is no redis-server (Debian: apt install redis-server)")
    socket = folder / "redis.sock"
    durable = ["--appendonly", "yes", "--appendfsync", "everysec"]
    own = ["--port", "0", "--unixsocket", str(socket), "--dir", str(folder), "--save", ""]
    with subprocess.Popen([program, *own, *durable], stdout=subprocess.DEVNULL) as process:  # noqa: S603
        try:
            deadline = time.monotonic() + REDIS_SECONDS
            while not socket.exists():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise NotRun("redis-server did not start")
                time.sleep(0.05)
            yield f"redis+socket://{socket}"
        finally:
            process.terminate()
