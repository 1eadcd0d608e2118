"""The one place that reads the environment. Every `ONTHEDOT_…` variable is also a flag of the command."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Self

import platformdirs

from app.domain import budget
from app.setting_values import (
    ROLES,
    parse_admin_key,
    parse_bool,
    parse_dsn,
    parse_label,
    parse_labels,
    parse_list,
    parse_path,
    parse_processes,
    parse_roles,
    parse_url,
    whole,
    within,
)

PREFIX = "ONTHEDOT_"
CLIENT_VARIABLES = {"ONTHEDOT_URL", "ONTHEDOT_TOKEN_FILE"}
"""Read by the command line client, not by the server."""
SUPERVISOR_FD = "ONTHEDOT_SUPERVISOR_FD"
"""Set by `serve` for the processes it starts: the socket that ties them to it (see `app.children`)."""
COMMAND_VARIABLES = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")
"""What commands get of a worker's environment."""


class InvalidSetting(ValueError):
    """A setting cannot be used; the message names it and the remedy."""


def _default_data_dir() -> Path:
    """Return `/var/lib/onthedot` for root, else the platform's folder for a user's application data."""
    if sys.platform != "win32" and os.geteuid() == 0:
        return Path("/var/lib/onthedot")
    return Path(platformdirs.user_data_dir("onthedot", appauthor=False))


def _setting(default: object, parse: Callable[[str], object], help_text: str, *, secret: bool = False) -> Any:  # noqa: ANN401 - like `field`
    """Declare a setting; secrets stay out of `repr` and so out of logs."""
    make = default if callable(default) else lambda: default
    return field(default_factory=make, metadata={"parse": parse, "help": help_text}, repr=not secret)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings, parsed and checked. Build one with `Settings.from_env()`."""

    database_url: str | None = _setting(
        None, parse_dsn, "PostgreSQL to use; unset: an embedded PostgreSQL 18 under data_dir", secret=True
    )
    migrate_database_url: str | None = _setting(
        None, parse_dsn, "DSN of the owner, for migrations; unset: database_url", secret=True
    )
    data_dir: Path = _setting(
        _default_data_dir,
        parse_path,
        "embedded cluster, first-run key, logs",
    )
    host: str = _setting("127.0.0.1", str, "address of API and dashboard")
    port: int = _setting(8080, whole(0, 65535), "their port; 0 picks a free one and prints it")
    environment: str = _setting("", parse_label, "what the dashboard says this house is; production in red")
    roles: tuple[str, ...] = _setting(ROLES, parse_roles, "which parts run: api, materializer, worker")
    api_processes: int = _setting(1, whole(1, 64), "API processes")
    worker_processes: tuple[int, int] = _setting(
        lambda: (os.cpu_count() or 1,) * 2, parse_processes, "worker processes; 1..8: fewest and most"
    )
    concurrency: int = _setting(100, whole(1, 10_000), "executions one worker process runs at once")
    queues: tuple[str, ...] = _setting((), parse_list, "queues the workers serve; unset: all")
    labels: dict[str, str] = _setting(
        dict, parse_labels, "what workers offer to tasks that require it: NAME=VALUE, …"
    )
    cpu_cores: float | None = _setting(
        None, within(0.01, 100_000), "cores that work on this host may take in all; unset: what it has"
    )
    memory_mb: int | None = _setting(
        None,
        whole(1, 2**31 - 1),
        "memory that work on this host may take in all, in MiB; unset: what it has",
    )
    task_modules: tuple[str, ...] = _setting((), parse_list, "modules to import for @task handlers")
    admin_api_key: str | None = _setting(
        None, parse_admin_key, "bootstrap admin key; unset: generated and kept in data_dir", secret=True
    )
    allow_shell: bool = _setting(
        default=False, parse=parse_bool, help_text="let tasks run commands (shell:…)"
    )
    allow_private_targets: bool = _setting(
        default=False, parse=parse_bool, help_text="let HTTP targets reach private addresses"
    )
    lease_seconds: float = _setting(30.0, within(1, 86_400), "lease of an execution, renewed each third")
    lookahead_ms: float = _setting(2000.0, within(100, 60_000), "how far ahead workers lease")
    horizon_seconds: float = _setting(
        3600.0, within(60, 31 * 86_400), "how far ahead occurrences are pre-computed"
    )
    grace_seconds: float = _setting(20.0, within(0, 86_400), "time for running handlers at shutdown")
    retention_days: int = _setting(30, whole(1, 36_500), "how long finished executions and logs are kept")
    transaction_connections: int = _setting(
        10, whole(0, 1000), "connections of a worker process for ctx.transaction"
    )

    @classmethod
    def from_env(
        cls, environ: Mapping[str, str] | None = None, *, flags: Mapping[str, str] | None = None
    ) -> Self:
        """Read every `ONTHEDOT_…` variable; `flags` (a setting's name -> text) win. A blank one counts as unset.

        Raises `InvalidSetting` for a value that cannot be used, or with which a promise could not be kept.
        """
        settings = cls(**_values(fields(cls), os.environ if environ is None else environ, flags or {}))
        found = budget.problems(lease_seconds=settings.lease_seconds, lookahead_ms=settings.lookahead_ms)
        for name, why in found:
            raise InvalidSetting(f"{variable(name)}={getattr(settings, name):g} cannot be used: {why}")
        return settings

    def to_env(self) -> dict[str, str]:
        """Return the variables from which `from_env` reads these settings again; unset ones are left out."""
        values = {variable(item.name): getattr(self, item.name) for item in fields(self)}
        return {name: _render(value) for name, value in values.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class ClientSettings:
    """What the commands need that talk to a server over REST."""

    url: str = _setting("http://127.0.0.1:8080", parse_url, "where the server listens")
    token_file: Path | None = _setting(
        None,
        parse_path,
        "file that holds your API key; unset: data_dir/admin.key, where you may read it",
    )
    data_dir: Path = _setting(
        _default_data_dir,
        parse_path,
        "data_dir of a server on this machine",
    )

    @classmethod
    def from_env(
        cls, environ: Mapping[str, str] | None = None, *, flags: Mapping[str, str] | None = None
    ) -> Self:
        """Read the variables of a client; `flags` (a setting's name -> text) win.

        Raises `InvalidSetting` for a value that cannot be used.
        """
        return cls(**_values(fields(cls), os.environ if environ is None else environ, flags or {}))


def variable(name: str) -> str:
    """Return the environment variable of the setting `name`: `lease_seconds` -> `ONTHEDOT_LEASE_SECONDS`."""
    return PREFIX + name.upper()


def misspelt_variables(environ: Mapping[str, str] | None = None) -> list[str]:
    """Return `ONTHEDOT_…` variables that name no setting, so that a start can warn of them."""
    environ = os.environ if environ is None else environ
    known = {variable(item.name) for item in fields(Settings)} | CLIENT_VARIABLES | {SUPERVISOR_FD}
    return sorted(name for name in environ if name.startswith(PREFIX) and name not in known)


def child_environment(settings: Settings, *, supervisor_fd: int) -> dict[str, str]:
    """Return this process's environment with `settings` written into it, for a process to be started."""
    own = {variable(item.name) for item in fields(Settings)}
    rest = {name: value for name, value in os.environ.items() if name not in own}
    return rest | settings.to_env() | {SUPERVISOR_FD: str(supervisor_fd)}


def handler_environment() -> dict[str, str]:
    """Return this process's environment without anything of onthedot's own, for the processes of handlers."""
    return {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}


def command_environment() -> dict[str, str]:
    """Return the few variables that a command finds besides those of its execution."""
    return {name: os.environ[name] for name in COMMAND_VARIABLES if name in os.environ}


def take_supervisor_fd() -> int | None:
    """Return the socket that `serve` left for this process, once: what handlers start must not see it."""
    number = os.environ.pop(SUPERVISOR_FD, "")
    return int(number) if number.isdecimal() else None


def _values(
    items: tuple[Field[Any], ...], environ: Mapping[str, str], flags: Mapping[str, str]
) -> dict[str, Any]:
    texts = dict(environ) | {variable(name): text for name, text in flags.items()}
    return {
        item.name: _parse(item, texts[variable(item.name)])
        for item in items
        if texts.get(variable(item.name), "").strip()
    }


def _parse(item: Field[object], text: str) -> object:
    try:
        return item.metadata["parse"](text.strip())
    except ValueError as error:
        shown = f"={text!r}" if item.repr else ""  # a secret must not reach a log by way of its error
        raise InvalidSetting(f"{variable(item.name)}{shown} cannot be used: {error}") from None


def _render(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case (int(low), int(high)):
            return f"{low}..{high}"
        case tuple():
            return ",".join(value)
        case dict():
            return ",".join(f"{name}={of}" for name, of in value.items())
        case _:
            return str(value)
