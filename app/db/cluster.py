"""A PostgreSQL cluster on disk: making it, configuring it, and running its programs."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from app.db.server_account import EmbeddedServerError, ServerAccount
from app.db.server_address import DATABASE, OWNER
from app.db.server_binaries import MAJOR_VERSION
from app.files import sync_folder, write_file

SUPERUSER = "postgres"
"""Has no password and so cannot log in: it is there for single-user mode."""
MANAGED_SETTINGS = "onthedot.conf"
INITDB_OPTIONS = (
    f"--username={SUPERUSER}",
    "--auth=reject",  # until `pg_hba.conf` is ours
    "--encoding=UTF8",
    "--data-checksums",
    # Sorts alike on every machine, whichever locales its C library knows.
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
)
HOST_BASED_AUTHENTICATION = """\
# Everybody proves who they are, also the users of this machine.
local  all          all                scram-sha-256
host   all          all  127.0.0.1/32  scram-sha-256
host   all          all  ::1/128       scram-sha-256
local  replication  all                scram-sha-256
host   replication  all  127.0.0.1/32  scram-sha-256
host   replication  all  ::1/128       scram-sha-256
"""
INCLUDE = f"""
# Written by onthedot at every start. Settings of your own go below this line, where they win.
include_if_exists = '{MANAGED_SETTINGS}'
"""


class Cluster:
    """The cluster in `folder`, run by `account` with the programs in `programs`."""

    def __init__(self, folder: Path, *, programs: Path, account: ServerAccount) -> None:
        self.folder = folder
        self._programs = programs
        self._account = account
        # Below a folder that the account may not enter (say /root) the path is of no use to it; its working
        # folder, which root gives it, is. Linux only.
        self._name_for_server = str(folder) if account.can_enter(folder.parent) else "/proc/self/cwd"

    def create(self, *, settings: Mapping[str, str], password: str) -> bool:
        """Make the cluster with its owner and database; return False if it exists.

        It is made beside its place and then renamed: one half made (killed midway) never passes for a whole.
        Raises `EmbeddedServerError` if the folder holds something else.
        """
        self._remove_drafts()
        if self.folder.is_dir() and any(self.folder.iterdir()):
            self._check_version()
            if self.folder.stat().st_uid == 0:  # root has put a copy here, say from a backup
                self._account.take_over(self.folder)
            return False
        # A new name each time: the `initdb` of a killed program may still be writing into the last one.
        draft = Path(tempfile.mkdtemp(prefix=self._draft_prefix, dir=self.folder.parent))
        Cluster(draft, programs=self._programs, account=self._account).initialise(settings, password=password)
        draft.rename(self.folder)
        sync_folder(self.folder.parent)
        return True

    def initialise(self, settings: Mapping[str, str], *, password: str) -> None:
        """Fill the empty folder."""
        self._account.take_over(self.folder)
        self.run("initdb", *INITDB_OPTIONS)
        write_file(self.folder / "pg_hba.conf", HOST_BASED_AUTHENTICATION, mode=0o644)
        with (self.folder / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(INCLUDE)
        self.configure(settings)
        self.run_alone(
            f"CREATE ROLE {OWNER} LOGIN CREATEROLE PASSWORD '{password}'",
            f"GRANT pg_monitor TO {OWNER}",
            f"CREATE DATABASE {DATABASE} OWNER {OWNER}",
        )

    def configure(self, settings: Mapping[str, str]) -> bool:
        """Write the settings that onthedot manages, for the next start; return whether any has changed."""
        quoted = {name: value.replace("'", "''") for name, value in settings.items()}
        text = "".join(f"{name} = '{value}'\n" for name, value in quoted.items())
        path = self.folder / MANAGED_SETTINGS
        if path.exists() and path.read_text(encoding="utf-8") == text:
            return False
        write_file(path, text, mode=0o644)
        return True

    def run_alone(self, *statements: str) -> None:
        """Run SQL statements of one line each as superuser in single-user mode, while no server runs."""
        text = "".join(f"{statement}\n" for statement in statements)
        self.run("postgres", "--single", "-c", "exit_on_error=on", SUPERUSER, text=text)

    def set_password(self, password: str) -> None:
        """Give the owner a password, while no server runs."""
        self.run_alone(f"ALTER ROLE {OWNER} PASSWORD '{password}'")

    def run(self, program: str, *options: str, text: str = "", env: Mapping[str, str] | None = None) -> str:
        """Run one of PostgreSQL's programs on the cluster and return what it printed.

        Its environment is bare, so that no `PG…` or locale variable of the caller's changes the server.
        """
        bare = {"PGDATA": self._name_for_server, "LC_ALL": "C", "PATH": os.defpath}
        command = [str(self._programs / program), *options]
        return self._account.run(command, folder=self.folder, env={**bare, **(env or {})}, text=text)

    @property
    def _draft_prefix(self) -> str:
        return f"{self.folder.name}.new-"

    def _remove_drafts(self) -> None:
        for draft in self.folder.parent.glob(f"{self._draft_prefix}*"):
            shutil.rmtree(draft, ignore_errors=True)  # what cannot go yet goes at a later start

    def _check_version(self) -> None:
        path = self.folder / "PG_VERSION"
        if not path.exists():
            raise EmbeddedServerError(
                f"{self.folder} holds no PostgreSQL cluster: move what is in it elsewhere"
            )
        if (version := path.read_text(encoding="ascii").strip()) != MAJOR_VERSION:
            raise EmbeddedServerError(
                f"{self.folder} was made by PostgreSQL {version} and this is {MAJOR_VERSION}: move it with "
                f"pg_dump and psql or pg_upgrade, or set ONTHEDOT_DATA_DIR to a new folder"
            )
