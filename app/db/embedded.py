"""The embedded PostgreSQL 18: made at the first start, run beside the program, stopped with it."""

import logging
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from app.db.cluster import Cluster
from app.db.data_dir_lock import DataDirLock
from app.db.postmaster import Postmaster
from app.db.server_account import EmbeddedServerError, ServerAccount
from app.db.server_address import ServerAddress
from app.db.server_binaries import binaries_for
from app.db.server_settings import default_settings
from app.files import write_file

log = logging.getLogger(__name__)

ROOT_DATA_DIR = Path("/var/lib/onthedot")


class EmbeddedPostgres:
    """A PostgreSQL server of its own under `data_dir`, with the database `onthedot` and its owner `onthedot`.

    In `data_dir`: `postgres/` (the cluster), `run/` (its socket), `log/` (its log), `dsn` (the connection
    string with the password) and `lock` (held from `start` to `stop`). `settings` are PostgreSQL settings
    that win over ours. Not for several threads at once.
    """

    def __init__(
        self, data_dir: Path, *, max_connections: int, settings: Mapping[str, str] | None = None
    ) -> None:
        self._data_dir = data_dir.absolute()
        self._settings = {**default_settings(max_connections=max_connections), **(settings or {})}
        self._lock = DataDirLock(self._data_dir / "lock")
        self._postmaster: Postmaster | None = None

    def start(self) -> str:
        """Start the server, or take over one whose program was killed; return its connection string.

        Makes the cluster first if there is none. Raises `EmbeddedServerError` if another program holds the
        folder or PostgreSQL cannot run there; the message says what helps.
        """
        try:
            _make_data_dir(self._data_dir)
            self._lock.acquire()
            try:
                return self._start()
            except BaseException:
                self.stop()
                raise
        except OSError as error:
            raise EmbeddedServerError(
                f"{self._data_dir} cannot be used: {error}; set ONTHEDOT_DATA_DIR to a folder of your own"
            ) from error

    def still_runs(self) -> bool:
        """Tell whether the server lives, without a look around: who is told no calls `keep_running`."""
        return self._postmaster is None or self._postmaster.still_runs()

    def keep_running(self) -> None:
        """Start the server again if it has died, and drop old logs. To be called now and then between `start` and
        `stop`."""
        if self._postmaster is None:
            return
        if not self._postmaster.is_running():
            log.error("PostgreSQL has died: starting it again", extra={"event": "postgres_died"})
            self._postmaster.start()
        self._postmaster.drop_old_logs()

    def stop(self) -> None:
        """Stop the server and return when it has ended; does nothing if it was not started."""
        try:
            if self._postmaster is not None:
                self._postmaster.stop()
        finally:
            self._postmaster = None
            self._lock.release()

    def _start(self) -> str:
        data_dir = self._data_dir.resolve()
        account = ServerAccount.for_cluster(data_dir / "postgres")
        programs = binaries_for(account, copies=[data_dir, ROOT_DATA_DIR])
        cluster = Cluster(data_dir / "postgres", programs=programs, account=account)
        sockets = _make_folders(data_dir, account=account)
        self._postmaster = Postmaster(cluster, socket_folder=sockets)
        known = _read(data_dir / "dsn")
        usable = sockets if account.can_enter(sockets) else None
        address = _choose_address(usable, known=known, running=self._postmaster.is_running())
        return self._bring_up(cluster, self._postmaster, address=address, known=known)

    def _bring_up(
        self, cluster: Cluster, postmaster: Postmaster, *, address: ServerAddress, known: str
    ) -> str:
        password = urlsplit(known).password or secrets.token_urlsafe(24)
        settings = {**self._settings, **address.server_settings()}
        created = cluster.create(settings=settings, password=password)
        if cluster.configure(settings) or not known:
            postmaster.stop()  # one taken over restarts for new settings, and when nobody knows its password
        if not postmaster.is_running():
            postmaster.clear_crash()
            if not known and not created:
                cluster.set_password(password)
        # Before the start: should this program be killed now, the next one takes over by what it reads here.
        write_file(self._data_dir / "dsn", f"{address.dsn(password)}\n", mode=0o600)
        postmaster.start()
        _check_login(cluster, address=address, password=password, dsn_path=self._data_dir / "dsn")
        return address.dsn(password)


def _make_data_dir(folder: Path) -> None:
    """Make the data folder; one that exists keeps its permissions."""
    if not folder.is_dir():
        folder.mkdir(parents=True)
        folder.chmod(0o711 if os.geteuid() == 0 else 0o700)  # root's server, another user, passes through it


def _make_folders(data_dir: Path, *, account: ServerAccount) -> Path:
    """Make the folder for sockets, which is returned, and a name for the log where people look for it."""
    sockets = data_dir / "run"
    if not sockets.is_dir():
        sockets.mkdir()
        sockets.chmod(0o755)
        account.take_over(sockets)
    link = data_dir / "log"
    if not link.is_symlink() and not link.exists():
        link.symlink_to(Path("postgres", "log"))
    return sockets


def _choose_address(sockets: Path | None, *, known: str, running: bool) -> ServerAddress:
    """Return a socket in `sockets` if possible, else a port on loopback: the last one while it can be had."""
    on_socket = ServerAddress.on_socket(sockets) if sockets else None
    last = ServerAddress.from_dsn(known) if known else None
    if on_socket or last is None or last.socket_folder:
        return on_socket or ServerAddress.on_free_port()
    return last if running or last.is_free() else ServerAddress.on_free_port()


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""


def _check_login(cluster: Cluster, *, address: ServerAddress, password: str, dsn_path: Path) -> None:
    try:
        options = [
            "--no-psqlrc",
            "--quiet",
            "--no-password",
            f"--dbname={address.dsn()}",
            "--command=SELECT 1",
        ]
        cluster.run("psql", *options, env={"PGPASSWORD": password})
    except EmbeddedServerError as error:
        raise EmbeddedServerError(
            f"PostgreSQL runs but refuses the connection string in {dsn_path} ({error}): "
            "remove that file to have a new password made"
        ) from error
