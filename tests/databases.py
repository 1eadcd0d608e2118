"""Databases for tests: copies of a migrated one, which is made once a run."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import errors, sql

from app.db.migrate import upgrade

MEMORY = Path("/dev/shm")  # noqa: S108 - looked at before it is used
ENOUGH_BYTES = 4 << 30
_LOCK = "SELECT pg_advisory_lock(1)"


def prefer_memory() -> None:
    """Have temporary files in memory, also those of processes that are started, where the machine has room for it and
    nobody has said otherwise: each test copies a thousand small files, which costs a disk twenty times as much."""
    if "TMPDIR" not in os.environ and MEMORY.is_dir() and os.access(MEMORY, os.W_OK):
        found = os.statvfs(MEMORY)
        runs_programs = not found.f_flag & getattr(os, "ST_NOEXEC", 0)  # some tests copy PostgreSQL's
        if runs_programs and found.f_bavail * found.f_frsize >= ENOUGH_BYTES:
            os.environ["TMPDIR"] = str(MEMORY)
            tempfile.tempdir = None


@dataclass(frozen=True, kw_only=True)
class Databases:
    """The databases of one worker of a run, on a server that other runs and workers may use too."""

    host: str
    port: int
    user: str
    password: str
    run: str
    worker: str

    @property
    def template(self) -> str:
        """Return the name of the database that is copied."""
        return f"{self.run}_template"

    def name(self, what: str) -> str:
        """Return a name that only this worker uses."""
        return f"{self.run}_{self.worker}_{what}"

    def dsn(self, name: str) -> str:
        """Return where a database is."""
        return f"postgresql://{self.user}:{self.password}@{self.host}:{self.port}/{name}"

    def make_template(self) -> None:
        """Make what is copied, unless another worker has done so."""
        draft = self.name("draft")
        with self.admin() as admin:
            admin.execute(_LOCK)
            if not admin.execute("SELECT FROM pg_database WHERE datname = %s", [self.template]).fetchall():
                admin.execute(_statement("CREATE DATABASE {}", draft))
                upgrade(self.dsn(draft))
                admin.execute(_statement("ALTER DATABASE {} RENAME TO {}", draft, self.template))

    def drop_template(self) -> None:
        """Leave nothing on a server that stays."""
        self._drop(self.template)

    @contextmanager
    def cloned(self, what: str) -> Iterator[str]:
        """Give the DSN of a migrated database that exists for as long as this."""
        name = self.name(what)
        with self.admin() as admin:  # by way of the log, as is the default, it takes twice as long
            admin.execute(
                _statement("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy", name, self.template)
            )
        try:
            yield self.dsn(name)
        finally:
            self._drop(name)

    @contextmanager
    def admin(self) -> "Iterator[psycopg.Connection[tuple[object, ...]]]":
        """Give a connection that can make and drop databases."""
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
            yield connection

    def _drop(self, name: str) -> None:
        with self.admin() as admin, suppress(errors.InvalidCatalogName):
            admin.execute(_statement("DROP DATABASE {} WITH (FORCE)", name))


def _statement(text: str, *names: str) -> sql.Composed:
    return sql.SQL(text).format(*map(sql.Identifier, names))  # type: ignore[arg-type]  # our own text
