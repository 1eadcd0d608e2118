"""Fixtures: one real PostgreSQL for the run, a migrated template in it, a clone of that for each test."""

import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest
from pytest_postgresql import factories
from pytest_postgresql.executors import NoopExecutor
from pytest_postgresql.janitor import DatabaseJanitor
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.clock import DatabaseClock
from app.db.migrate import upgrade
from app.db.pools import Pool, open_engine, open_pool
from tests.postgres import Server, start_server

SERVER = "ONTHEDOT_TEST_SERVER"
"""Host, port, user and password of the server, for the workers of pytest-xdist."""

_running = pytest.StashKey[tuple[Server, tempfile.TemporaryDirectory[str]]]()


def pytest_configure(config: pytest.Config) -> None:
    """Start the server, once for a run with any number of workers, and point pytest-postgresql at it."""
    if SERVER not in os.environ:
        folder = tempfile.TemporaryDirectory(prefix="otd-", ignore_cleanup_errors=True)
        Path(folder.name).chmod(0o711)
        server = start_server(Path(folder.name) / "server")
        config.stash[_running] = (server, folder)
        os.environ[SERVER] = f"{server.host} {server.port} {server.user} {server.password}"
    host, port, user, password = os.environ[SERVER].split()
    config.option.postgresql_host = host
    config.option.postgresql_port = port
    config.option.postgresql_user = user
    config.option.postgresql_password = password


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the server where it was started."""
    running = config.stash.get(_running, None)
    if running:
        running[0].stop()
        running[1].cleanup()


def migrated(*, host: str, port: int, user: str, dbname: str, password: str, autocommit: bool) -> None:
    """Migrate the template database."""
    del autocommit  # pytest-postgresql passes it to every loader
    upgrade(f"postgresql://{user}:{password}@{host}:{port}/{dbname}")


postgresql_server = factories.postgresql_noproc(dbname="onthedot_test", load=[migrated])
database = factories.postgresql("postgresql_server")


@pytest.fixture(scope="module")
def module_dsn(postgresql_server: NoopExecutor) -> Iterator[str]:
    """Return the DSN of a migrated database that a module has for itself."""
    server = postgresql_server
    name = f"{server.dbname}_module_{os.getpid()}"
    janitor = DatabaseJanitor(
        user=server.user,
        host=server.host,
        port=server.port,
        password=server.password,
        dbname=name,
        template_dbname=server.template_dbname,
    )
    with janitor:
        yield f"postgresql://{server.user}:{server.password}@{server.host}:{server.port}/{name}"


@pytest.fixture
def dsn(database: "psycopg.Connection[tuple[object, ...]]") -> str:
    """Return the DSN of a fresh, migrated database."""
    info = database.info
    return f"postgresql://{info.user}:{info.password}@{info.host}:{info.port}/{info.dbname}"


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
