"""A server of real processes, an API and a worker, and the command line to talk to it."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from app.cli.root import onthedot
from app.client.errors import ClientError
from app.client.rest import RestClient
from app.ports import reserved_port
from app.server.bootstrap import bootstrap
from app.settings import Settings
from tests.life.processes import eventually

KEY = "the-key-of-the-administrator-in-tests"


@dataclass(frozen=True, kw_only=True)
class Shell:
    """Runs commands in this process, as a shell would with these variables. Output is no terminal."""

    url: str
    environment: dict[str, str]

    def run(self, *arguments: str, **variables: str) -> Result:
        """Run `onthedot …`; `variables` win over those of the shell."""
        return CliRunner().invoke(onthedot, arguments, env=self.environment | variables, prog_name="onthedot")

    def json(self, *arguments: str) -> Any:
        """Run a command that succeeds, and return what it prints as JSON."""
        result = self.run(*arguments, "-o", "json")
        assert result.exit_code == 0, result.output
        return msgspec.json.decode(result.stdout)


@pytest.fixture(scope="module")
def shell(module_dsn: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """Return a shell in which the administrator talks to a server that a module has for itself."""
    folder = tmp_path_factory.mktemp("cli")
    key_file = folder / "key"
    key_file.write_text(KEY)
    with ExitStack() as stack:
        port = stack.enter_context(reserved_port("127.0.0.1", 0))
        settings = {
            "ONTHEDOT_DATABASE_URL": module_dsn,
            "ONTHEDOT_ADMIN_API_KEY": KEY,
            "ONTHEDOT_PORT": str(port),
        }
        asyncio.run(bootstrap(module_dsn, Settings.from_env(settings)))
        for role in ("api", "worker"):
            stack.enter_context(_process(role, settings, folder))
        url = f"http://127.0.0.1:{port}"
        eventually(lambda: _is_ready(url))
        yield Shell(url=url, environment={"ONTHEDOT_URL": url, "ONTHEDOT_TOKEN_FILE": str(key_file)})


@contextmanager
def _process(role: str, settings: dict[str, str], folder: Path) -> Iterator[None]:
    with (folder / f"{role}.log").open("wb") as log:
        command = [sys.executable, "-m", "app", role]
        process = subprocess.Popen(command, env=os.environ | settings, stdout=log, stderr=log)
        yield
        process.terminate()
        process.wait(timeout=30)


def _is_ready(url: str) -> bool:
    try:
        return RestClient(url, None).is_ready()[0]
    except ClientError:
        return False
