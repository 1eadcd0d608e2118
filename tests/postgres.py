"""A throw-away PostgreSQL for tests, made from the programs of the embedded one; works for root too."""

import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path

from app.db.cluster import Cluster
from app.db.postmaster import Postmaster
from app.db.server_account import ServerAccount
from app.db.server_address import LOOPBACK, OWNER, ServerAddress
from app.db.server_binaries import binaries_for
from app.db.server_settings import default_settings

FAST_AND_FORGETFUL = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_wal_senders": "0",
    "wal_level": "minimal",
    "log_min_messages": "fatal",
    "log_min_error_statement": "fatal",
}


@dataclass(frozen=True, kw_only=True)
class Server:
    """A running server. `user` is a superuser, `dsn` names the empty database `onthedot`."""

    host: str
    port: int
    user: str
    password: str
    dsn: str
    directory: Path
    postmaster: Postmaster

    def stop(self) -> None:
        """Stop the server and delete its files."""
        self.postmaster.stop()
        shutil.rmtree(self.directory)


def start_server(directory: Path) -> Server:
    """Start a server whose files lie in `directory`, which is made; `Server.stop` ends it."""
    directory.mkdir()
    directory.chmod(0o711)  # root's server runs as another user, who passes through
    account = ServerAccount.for_cluster(directory)
    cluster = Cluster(
        directory.resolve() / "postgres", programs=binaries_for(account, copies=[directory]), account=account
    )
    address, password = ServerAddress.on_free_port(), secrets.token_urlsafe()
    settings = default_settings(max_connections=300) | FAST_AND_FORGETFUL | address.server_settings()
    cluster.create(settings=settings, password=password)
    cluster.run_alone(f"ALTER ROLE {OWNER} SUPERUSER")
    postmaster = Postmaster(cluster, socket_folder=directory)
    postmaster.start()
    return Server(
        host=LOOPBACK,
        port=address.port,
        user=OWNER,
        password=password,
        dsn=address.dsn(password),
        directory=directory,
        postmaster=postmaster,
    )
