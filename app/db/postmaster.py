"""The server process on a cluster: finding, starting and stopping it, and clearing up after its crash."""

import logging
import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil

from app.db.cluster import Cluster
from app.db.server_account import EmbeddedServerError

log = logging.getLogger(__name__)

PID_FILE = "postmaster.pid"
STATUS_LINE = 7
LOG_FOLDER = "log"
KEPT_LOG_FILES = 10
SHOWN_LOG_LINES = 10
START_TIMEOUT_SECONDS = 600
"""A server that crashed with gigabytes of log to replay needs minutes on a slow disk."""
STOP_TIMEOUT_SECONDS = 120
ORPHANS_TIMEOUT_SECONDS = 2
POLL_SECONDS = 0.02
GONE = (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)


class Postmaster:
    """PostgreSQL's main process on `cluster`, whoever started it; its sockets lie in `socket_folder`."""

    def __init__(self, cluster: Cluster, *, socket_folder: Path) -> None:
        self._cluster = cluster
        self._socket_folder = socket_folder
        self._seen: psutil.Process | None = None

    def is_running(self) -> bool:
        """Tell whether the server lives, ready or not."""
        self._seen = self._process()
        return self._seen is not None

    def still_runs(self) -> bool:
        """Tell whether the process lives that `is_running` saw: a question that costs next to nothing."""
        with suppress(psutil.Error):
            return self._seen is not None and self._seen.status() not in GONE
        return False

    def start(self) -> None:
        """Start the server, unless it runs, and return when it accepts connections.

        Raises `EmbeddedServerError` with the end of the server's log if it does not.
        """
        if self._is_ready_in_time():
            return
        self.clear_crash()
        try:
            self._cluster.run("pg_ctl", "start", "--silent", "--wait", f"--timeout={START_TIMEOUT_SECONDS}")
        except EmbeddedServerError as error:
            raise EmbeddedServerError(
                f"PostgreSQL did not start: {error}\n{self._log_tail()}".rstrip()
            ) from None

    def stop(self) -> None:
        """Stop the server, if it runs, and return when it has ended. Open transactions are rolled back.

        One that cannot finish its checkpoint in time is cut short and recovers at its next start.
        """
        process = self._process()
        if process is None:
            return
        for how in (signal.SIGINT, signal.SIGQUIT):  # fast, immediate
            if self._end([process], how=how, timeout_seconds=STOP_TIMEOUT_SECONDS):
                return
        raise EmbeddedServerError(f"PostgreSQL (pid {process.pid}) does not stop")

    def drop_old_logs(self) -> None:
        """Keep only the newest files of the server's log."""
        for path in self._log_files()[:-KEPT_LOG_FILES]:
            path.unlink(missing_ok=True)

    def _process(self) -> psutil.Process | None:
        """Return the process in `postmaster.pid` if it is this cluster's server.

        The pid alone proves nothing: after a crash or a reboot it may be anybody's.
        """
        lines = self._pid_file_lines()
        with suppress(psutil.Error, IndexError, ValueError):
            process = psutil.Process(int(lines[0]))
            return process if self._is_server(process) else None
        return None

    def _is_server(self, process: psutil.Process) -> bool:
        """Tell whether `process` is one of the cluster's: they all work in its folder."""
        with suppress(psutil.Error, OSError):
            return process.name() == "postgres" and _works_in(self._cluster.folder, process)
        return False

    def _is_ready_in_time(self) -> bool:
        """Wait while a running server starts or stops; return whether it accepts connections."""
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while self.is_running():
            lines = self._pid_file_lines()
            if len(lines) > STATUS_LINE and lines[STATUS_LINE].strip() == "ready":
                return True
            if time.monotonic() > deadline:
                raise EmbeddedServerError(
                    f"PostgreSQL (pid {lines[0]}) runs but is not ready\n{self._log_tail()}"
                )
            time.sleep(POLL_SECONDS)
        return False

    def clear_crash(self) -> None:
        """Take away what a killed server left: processes that have not noticed, files with a reused pid."""
        path = self._cluster.folder / PID_FILE
        if not path.exists():
            return
        orphans = [process for process in psutil.process_iter() if self._is_server(process)]
        for how in (signal.SIGQUIT, signal.SIGKILL):
            self._end(orphans, how=how, timeout_seconds=ORPHANS_TIMEOUT_SECONDS)
        # PostgreSQL would take a reused pid in them for a running server and refuse to start. Safe: no server
        # process is left, and the caller holds the lock of the data folder.
        for stale in (path, *self._socket_folder.glob(".s.PGSQL.*")):
            stale.unlink(missing_ok=True)

    def _end(self, processes: list[psutil.Process], *, how: signal.Signals, timeout_seconds: float) -> bool:
        """Send a signal to server processes and return whether they have ended in time.

        `Process.wait` would not do: it waits for a zombie, and in a container there may be nobody to reap it.
        """
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(how)
        deadline = time.monotonic() + timeout_seconds
        while any(self._is_server(process) for process in processes):
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_SECONDS)
        return True

    def _log_files(self) -> list[Path]:
        """Return the files of the server's log, oldest first (their names are instants)."""
        return sorted((self._cluster.folder / LOG_FOLDER).glob("*.log"))

    def _log_tail(self) -> str:
        lines = [
            line for path in self._log_files()[-1:] for line in path.read_text(errors="replace").splitlines()
        ]
        return "\n".join(lines[-SHOWN_LOG_LINES:])

    def _pid_file_lines(self) -> list[str]:
        try:
            return (self._cluster.folder / PID_FILE).read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []


def _works_in(folder: Path, process: psutil.Process) -> bool:
    # The folder itself if /proc can tell: inside a container its path may name another one.
    link = Path(f"/proc/{process.pid}/cwd")
    return link.samefile(folder) if link.is_symlink() else process.cwd() == str(folder)
