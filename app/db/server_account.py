"""The system user that the embedded PostgreSQL runs as: the present one, except for root, whom it refuses."""

import logging
import os
import pwd
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Self

log = logging.getLogger(__name__)

SYSTEM_USER = "onthedot"
FALLBACK_USER = "nobody"


class EmbeddedServerError(RuntimeError):
    """The embedded PostgreSQL cannot do what was asked; the message says why and what helps."""


@dataclass(frozen=True)
class ServerAccount:
    """Runs programs as the server's system user; `uid` and `gid` are None where that is the present user."""

    uid: int | None = None
    gid: int | None = None

    @classmethod
    def for_cluster(cls, folder: Path) -> Self:
        """Return the account for the cluster in `folder`, which need not exist yet.

        Root keeps the owner of an existing cluster, else takes the system user `onthedot` (made if possible),
        else `nobody`.
        """
        if os.geteuid() != 0:
            return cls()
        if folder.exists() and (owner := folder.stat()).st_uid != 0:
            return cls(owner.st_uid, owner.st_gid)
        user = _find_user(SYSTEM_USER) or _create_user(SYSTEM_USER) or _find_user(FALLBACK_USER)
        if user is None:
            raise EmbeddedServerError(
                f"PostgreSQL does not run as root, and there is no system user {SYSTEM_USER!r}: "
                f"create it (useradd --system {SYSTEM_USER}), or set ONTHEDOT_DATABASE_URL"
            )
        return cls(user.pw_uid, user.pw_gid)

    def run(self, command: list[str], *, folder: Path, env: dict[str, str], text: str = "") -> str:
        """Run `command` in `folder` with `text` as its input and return what it printed, errors included.

        Raises `EmbeddedServerError` with that output if the program fails.
        """
        # A file and not a pipe: a server that the program leaves behind keeps its output open.
        with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as source:
            source.write(text)
            source.seek(0)
            status = self._call(command, cwd=folder, env=env, stdin=source.fileno(), stdout=output.fileno())
            output.seek(0)
            printed = output.read().strip()
        if status:
            raise EmbeddedServerError(f"{Path(command[0]).name} failed (status {status}): {printed}")
        return printed

    def can_enter(self, folder: Path) -> bool:
        """Tell whether the account can reach `folder` by its path."""
        enter = ["/bin/sh", "-c", 'cd "$1"', "sh", str(folder)]
        return self.uid is None or self._call(enter, cwd=Path("/"), env={}) == 0

    def can_execute(self, program: Path) -> bool:
        """Tell whether the account can start `program`, which must know `--version`."""
        if self.uid is None:
            return True
        try:
            return self._call([str(program), "--version"], cwd=Path("/"), env={}) == 0
        except PermissionError:
            return False

    def take_over(self, folder: Path) -> None:
        """Make the account the owner of `folder` and of all that lies in it."""
        if self.uid is None or self.gid is None:
            return
        os.chown(folder, self.uid, self.gid, follow_symlinks=False)
        for parent, names, files in os.walk(folder):
            for name in names + files:
                os.chown(Path(parent, name), self.uid, self.gid, follow_symlinks=False)

    def _call(
        self,
        command: list[str],
        *,
        cwd: Path,
        env: dict[str, str],
        stdin: int = subprocess.DEVNULL,
        stdout: int = subprocess.DEVNULL,
    ) -> int:
        # A session of its own, so that Ctrl-C in the terminal does not reach the server.
        return subprocess.run(  # noqa: S603 - our own programs
            command,
            cwd=cwd,
            env=env,
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.STDOUT,
            user=self.uid,
            group=self.gid,
            extra_groups=None if self.uid is None else [],
            start_new_session=True,
            check=False,
        ).returncode


def _find_user(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _create_user(name: str) -> pwd.struct_passwd | None:
    useradd = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if useradd is None:
        return None
    options = ["--system", "--no-create-home", "--home-dir", "/nonexistent", "--shell", "/usr/sbin/nologin"]
    subprocess.run([useradd, *options, name], capture_output=True, check=False)  # noqa: S603
    if user := _find_user(name):
        log.info("created the system user %s to run PostgreSQL", name, extra={"event": "system_user_created"})
        return user
    return None
