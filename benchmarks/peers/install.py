"""Has the packages of each system installed, exact versions, in a folder of its own."""

import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.house import ROOT, say
from benchmarks.peers.systems import System

HERE = Path(__file__).parent
PATIENCE_SECONDS = 600


class NotRun(Exception):
    """A system could not be measured; the message says why."""


def command(system: System, cache: Path) -> list[str]:
    """Return the command that starts the script of a system, installed at the first call.

    Raises `NotRun` if it cannot be installed.
    """
    if not system.pins:
        return [sys.executable, "-m", f"benchmarks.peers.{Path(system.script).stem}"]
    folder, stamp = cache / system.name, cache / system.name / "installed"
    if not stamp.exists() or stamp.read_text("utf-8").split() != list(system.pins):
        say(f"Installing {' '.join(system.pins)} ...")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (_install_node if _is_node(system) else _install_python)(system, folder)
        stamp.write_text("\n".join(system.pins), "utf-8")
    if _is_node(system):
        return [str(folder / "node_modules" / ".bin" / "node"), str(_beside_modules(system, folder))]
    return [str(folder / "bin" / "python"), str(HERE / system.script)]


def _is_node(system: System) -> bool:
    return system.script.endswith(".mjs")


def _install_python(system: System, folder: Path) -> None:
    _run(sys.executable, "-m", "venv", str(folder))
    _run(str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *system.pins)


def _install_node(system: System, folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise NotRun("there is no npm (Debian: apt install npm)")
    _run(npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", *system.pins)


def _beside_modules(system: System, folder: Path) -> Path:
    """Copy the script: Node looks for packages beside the file that imports them."""
    for name in ("job.mjs", system.script):
        shutil.copy(HERE / name, folder / name)
    return folder / system.script


def _run(*arguments: str) -> None:
    name = Path(arguments[0]).name
    try:
        subprocess.run(  # noqa: S603 - our own commands
            arguments, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True
        )
    except subprocess.TimeoutExpired:
        raise NotRun(f"{name} did not install it within {PATIENCE_SECONDS} s") from None
    except subprocess.CalledProcessError as error:
        raise NotRun(f"{name} could not install it: {error.stderr.strip()[-300:]}") from None
