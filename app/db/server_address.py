"""Where the embedded PostgreSQL listens: a socket in the file system, or TCP on loopback."""

import re
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs, urlsplit

DATABASE = "onthedot"
OWNER = "onthedot"
LOOPBACK = "127.0.0.1"
SOCKET_PORT = 5432
"""Only names the socket file, in a folder of its own."""
MAX_SOCKET_PATH_BYTES = 103
"""`sun_path` holds 108 bytes on Linux and 104 on macOS, the closing zero included."""
_PLAIN_PATH = re.compile(r"/[\w./+~-]*", re.ASCII)
"""Blanks, commas and quotes have a meaning in `unix_socket_directories` or in a connection string."""


@dataclass(frozen=True, kw_only=True)
class ServerAddress:
    """`port` on loopback, or a socket in `socket_folder`."""

    port: int
    socket_folder: Path | None = None

    @classmethod
    def on_socket(cls, folder: Path) -> Self | None:
        """Return the address in `folder`, or None if its path cannot be used for a socket."""
        name = str(folder / f".s.PGSQL.{SOCKET_PORT}")
        if len(name) > MAX_SOCKET_PATH_BYTES or not _PLAIN_PATH.fullmatch(name):
            return None
        return cls(port=SOCKET_PORT, socket_folder=folder)

    @classmethod
    def on_free_port(cls) -> Self:
        """Return an address on loopback that nobody uses now."""
        with socket.socket() as probe:
            probe.bind((LOOPBACK, 0))
            return cls(port=probe.getsockname()[1])

    @classmethod
    def from_dsn(cls, dsn: str) -> Self:
        """Return the address in a connection string that `dsn` made."""
        parts = urlsplit(dsn)
        folders = parse_qs(parts.query).get("host")
        if folders:
            return cls(port=SOCKET_PORT, socket_folder=Path(folders[0]))
        return cls(port=parts.port or SOCKET_PORT)

    def is_free(self) -> bool:
        """Tell whether a server could listen here now."""
        if self.socket_folder:
            return True
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, self.port))
            except OSError:
                return False
        return True

    def server_settings(self) -> dict[str, str]:
        """Return the PostgreSQL settings that make a server listen here and nowhere else."""
        return {
            "listen_addresses": "" if self.socket_folder else LOOPBACK,
            "port": str(self.port),
            "unix_socket_directories": str(self.socket_folder or ""),
        }

    def dsn(self, password: str = "") -> str:
        """Return the connection string of the database `onthedot` for its owner; `password` is URL-safe."""
        user = f"{OWNER}:{password}" if password else OWNER
        if self.socket_folder:
            return f"postgresql://{user}@/{DATABASE}?host={self.socket_folder}"
        return f"postgresql://{user}@{LOOPBACK}:{self.port}/{DATABASE}"
