"""Fixtures: one real PostgreSQL for the run, a migrated template in it, a clone of that for each test."""

import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.clock import DatabaseClock
from app.db.engine import open_engine
from app.db.pools import Pool, open_pool
from tests.databases import Databases, prefer_memory
from tests.postgres import Server, start_server

SERVER = "ONTHEDOT_TEST_SERVER"
"""Host, port, user and password of the server, for the workers of pytest-xdist."""
RUN = "ONTHEDOT_TEST_RUN"
"""What the names of the run's databases begin with, for the same."""

_running = pytest.StashKey[tuple[Server, tempfile.TemporaryDirectory[str]]]()


def pytest_configure(config: pytest.Config) -> None:
    """Start the server, once for a run with any number of workers."""
    if is_worker(config):
        return
    os.environ[RUN] = f"test_{uuid4().hex[:8]}"
    if SERVER not in os.environ:
        prefer_memory()
        folder = tempfile.TemporaryDirectory(prefix="otd-", ignore_cleanup_errors=True)
        Path(folder.name).chmod(0o711)
        server = start_server(Path(folder.name) / "server")
        config.stash[_running] = (server, folder)
        os.environ[SERVER] = f"{server.host} {server.port} {server.user} {server.password}"


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the server where it was started; on another one leave nothing."""
    running = config.stash.get(_running, None)
    if running:
        running[0].stop()
        running[1].cleanup()
    elif not is_worker(config):
        databases_of_run().drop_template()


def is_worker(config: pytest.Config) -> bool:
    """Tell whether this is a process of pytest-xdist's."""
    return hasattr(config, "workerinput")


def databases_of_run() -> Databases:
    """Return the databases of this worker."""
    host, port, user, password = os.environ[SERVER].split()
    return Databases(
        host=host,
        port=int(port),
        user=user,
        password=password,
        run=os.environ[RUN],
        worker=os.environ.get("PYTEST_XDIST_WORKER", "main"),
    )


@pytest.fixture(scope="session")
def databases() -> Databases:
    """Return what makes databases, with its template made."""
    made = databases_of_run()
    made.make_template()
    return made


@pytest.fixture(scope="module")
def module_dsn(databases: Databases) -> Iterator[str]:
    """Return the DSN of a migrated database that a module has for itself."""
    with databases.cloned("module") as dsn:
        yield dsn


@pytest.fixture
def dsn(databases: Databases) -> Iterator[str]:
    """Return the DSN of a fresh, migrated database."""
    with databases.cloned("test") as dsn:
        yield dsn


@pytest.fixture
def database(dsn: str) -> "Iterator[psycopg.Connection[tuple[object, ...]]]":
    """Return a connection to a fresh, migrated database."""
    with closing(psycopg.connect(dsn)) as connection:
        yield connection


@pytest.fixture
async def pool(dsn: str) -> AsyncIterator[Pool]:
    """Return a pool on a fresh, migrated database."""
    opened = await open_pool(dsn, size=4, application_name="test")
    yield opened
    await opened.close()


@pytest.fixture
async def engine(dsn: str) -> AsyncIterator[AsyncEngine]:
    """Return an SQLAlchemy engine on a fresh, migrated database."""
    opened = open_engine(dsn, size=4, application_name="test")
    yield opened
    await opened.dispose()


@pytest.fixture
async def clock(pool: Pool) -> DatabaseClock:
    """Return the database's clock."""
    made = DatabaseClock()
    await made.synchronise(pool)
    return made
