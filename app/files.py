"""Files written whole or not at all."""

import os
import tempfile
from pathlib import Path


def write_file(path: Path, text: str, *, mode: int) -> None:
    """Replace `path` by a file of `text` with permission bits `mode`: readers see the old one or the new one.

    The file never has wider permissions than `mode`, not for a moment, and a symbolic link at `path` is
    replaced, not followed (root writes into folders that belong to a less trusted user).
    """
    number, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text)
            os.fchmod(number, mode)
            file.flush()
            os.fsync(number)
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` survive a power failure."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
