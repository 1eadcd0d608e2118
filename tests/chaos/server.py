"""A PostgreSQL for chaos: durable, with its log readable as changes, and open to violence."""

import os
import secrets
import shutil
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import psutil
import psycopg

from app.db.cluster import Cluster
from app.db.embedded import EmbeddedPostgres
from app.db.migrate import upgrade
from app.db.postmaster import Postmaster
from app.db.server_account import ServerAccount
from app.db.server_address import OWNER, ServerAddress
from app.db.server_binaries import binaries_for
from app.db.server_settings import default_settings

CONNECTIONS = 200
READABLE = {"wal_level": "logical", "max_wal_senders": "10", "max_replication_slots": "10"}
"""What an onthedot's own server does not need: its log is written so that changes can be read from it."""
DEADLINE_SECONDS = 60.0
POLL_SECONDS = 0.01


@dataclass(kw_only=True)
class ChaosServer:
    """A server in `directory`. Its role owns the database and may do everything."""

    directory: Path
    cluster: Cluster
    postmaster: Postmaster
    address: ServerAddress
    password: str

    @classmethod
    def create(cls, directory: Path, *, settings: Mapping[str, str] | None = None) -> Self:
        """Make a server in an empty folder, and start it."""
        directory.mkdir(parents=True, exist_ok=True)
        directory.chmod(0o711)
        made = cls._at(directory)
        server_settings = default_settings(max_connections=CONNECTIONS) | READABLE
        made.cluster.create(
            settings=server_settings | made.address.server_settings() | dict(settings or {}),
            password=made.password,
        )
        made.cluster.run_alone(f"ALTER ROLE {OWNER} SUPERUSER REPLICATION")
        made.start()
        return made

    @classmethod
    def _at(cls, directory: Path) -> Self:
        account = ServerAccount.for_cluster(directory)
        programs = binaries_for(account, copies=[directory.parent])
        cluster = Cluster(directory.resolve() / "postgres", programs=programs, account=account)
        return cls(
            directory=directory,
            cluster=cluster,
            postmaster=Postmaster(cluster, socket_folder=directory),
            address=ServerAddress.on_free_port(),
            password=secrets.token_urlsafe(),
        )

    @classmethod
    def prepare_embedded(cls, data_dir: Path) -> Self:
        """Make an onthedot's own server in its data folder, so that its log can be read, and leave it to onthedot."""
        data_dir.mkdir(mode=0o711)
        embedded = EmbeddedPostgres(data_dir, max_connections=CONNECTIONS)
        dsn = embedded.start()
        embedded.stop()
        made = replace(
            cls._at(data_dir), address=ServerAddress.from_dsn(dsn), password=urlsplit(dsn).password or ""
        )
        made.cluster.run_alone(f"ALTER ROLE {OWNER} SUPERUSER REPLICATION")
        with (made.cluster.folder / "postgresql.auto.conf").open("a", encoding="utf-8") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in READABLE.items())
        return made

    @property
    def dsn(self) -> str:
        """Return where the database is."""
        return self.address.dsn(self.password)

    @property
    def pid(self) -> int:
        """Return the process that all others of the server descend from."""
        return int((self.cluster.folder / "postmaster.pid").read_text().split()[0])

    def migrate(self) -> None:
        """Make the tables."""
        upgrade(self.dsn)

    def start(self) -> None:
        """Start it; return when it accepts connections."""
        self.postmaster.start()

    def kill(self) -> None:
        """Kill every process of it at once: nothing is written any more."""
        processes = [psutil.Process(self.pid)]
        processes += processes[0].children(recursive=True)
        self._end(processes, signal.SIGKILL)

    def stop_at_once(self) -> None:
        """Stop it without a checkpoint."""
        self._end([psutil.Process(self.pid)], signal.SIGQUIT)

    def stop(self) -> None:
        """Stop it in order; open transactions are rolled back."""
        self._end([psutil.Process(self.pid)], signal.SIGINT)

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to all its processes."""
        postmaster = psutil.Process(self.pid)
        for process in [postmaster, *postmaster.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def destroy(self) -> None:
        """Stop it, if it runs, and delete its files."""
        self.postmaster.stop()
        shutil.rmtree(self.directory)

    def query(self, text: str, *values: object) -> list[tuple[object, ...]]:
        """Return the rows of a query; of a command none."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            cursor = connection.execute(text, values or None)  # type: ignore[arg-type]  # our own text
            return cursor.fetchall() if cursor.description else []

    def _end(self, processes: list[psutil.Process], how: signal.Signals) -> None:
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process.pid, how)
        deadline = time.monotonic() + DEADLINE_SECONDS
        while self.postmaster.is_running():
            if time.monotonic() > deadline:
                raise TimeoutError(f"the server does not end by {how.name}")
            time.sleep(POLL_SECONDS)
