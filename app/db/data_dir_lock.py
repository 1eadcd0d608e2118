"""The lock that one running `serve` holds on its data folder."""

import fcntl
import os
from pathlib import Path

from app.db.server_account import EmbeddedServerError


class DataDirLock:
    """An advisory lock on a file that holds the owner's pid.

    The kernel frees it when the owner dies, however it dies: that tells a running program from a crashed one.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def acquire(self) -> None:
        """Take the lock. Raises `EmbeddedServerError` that names the holder if another process has it."""
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(file, 20, 0).decode(errors="replace").strip() or "unknown"
            os.close(file)
            raise EmbeddedServerError(
                f"{self._path.parent} is held by another onthedot serve (pid {holder}): "
                "stop it, or set ONTHEDOT_DATA_DIR to another folder"
            ) from None
        os.truncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        self._file = file

    def release(self) -> None:
        """Give the lock back; the file stays, because removing it would let two processes lock two files."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
