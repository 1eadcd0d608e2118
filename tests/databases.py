"""Databases for tests: pytest-postgresql's copies of a migrated one, which is made once a run."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from psycopg import sql
from pytest_postgresql.janitor import DatabaseJanitor

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


class Janitor(DatabaseJanitor):
    """Makes and drops a database; a copy of a template file by file: by way of the log it takes twice as long."""

    def _build_create_database_sql(self) -> sql.Composed:
        statement = super()._build_create_database_sql()
        return statement + sql.SQL(" STRATEGY file_copy") if self.template_dbname else statement


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
        draft, template = self.janitor(self.name("draft")), self.template
        with draft.cursor() as admin:
            admin.execute(_LOCK)
            if not admin.execute("SELECT FROM pg_database WHERE datname = %s", [template]).fetchall():
                draft.init()
                upgrade(self.dsn(draft.dbname))
                names = map(sql.Identifier, (draft.dbname, template))
                admin.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(*names))

    def drop_template(self) -> None:
        """Leave nothing on a server that stays."""
        self.janitor(self.template).drop()

    @contextmanager
    def cloned(self, what: str) -> Iterator[str]:
        """Give the DSN of a migrated database that exists for as long as this."""
        with self.janitor(self.name(what), template=self.template) as made:
            yield self.dsn(made.dbname)

    def janitor(self, name: str, *, template: str | None = None) -> Janitor:
        """Return what makes and drops a database."""
        return Janitor(
            host=self.host,
            port=self.port,
            user=self.user,
            password=self.password,
            dbname=name,
            template_dbname=template,
        )
