"""`onthedot`: the commands that run processes of ours, and those that talk to a server."""

import dataclasses
import importlib
import logging
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import click
import uvloop

from app import __version__
from app.cli import worker
from app.cli.cron import cron
from app.cli.exec import executions
from app.cli.job import job
from app.cli.key import key
from app.cli.queue import queue
from app.cli.session import Nouns
from app.cli.status import status
from app.cli.task import task
from app.cli.user import user
from app.cli.wf import wf
from app.logs import set_up_logging
from app.settings import InvalidSetting, Settings, misspelt_variables, variable
from app.startup import CannotStart

log = logging.getLogger(__name__)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def onthedot() -> None:
    """A distributed job scheduler on one PostgreSQL.

    Every setting is an environment variable (ONTHEDOT_PORT) and a flag of the commands that run processes (--port).
    """


@onthedot.command()
def version() -> None:
    """Print the version."""
    click.echo(__version__)


def _serve(settings: Settings) -> int:
    from app.serve import serve  # the commands that need no server start without loading it

    return serve(settings)


def _migrate(settings: Settings) -> int:
    from app.db.migrate import upgrade

    dsn = settings.migrate_database_url or settings.database_url
    if dsn is None:
        raise click.UsageError(
            "set ONTHEDOT_DATABASE_URL; the embedded server is migrated by `onthedot serve`"
        )
    upgrade(dsn)
    return 0


def _run(name: str) -> Callable[..., int]:
    def run(settings: Settings, **flags: bool) -> int:
        if settings.database_url is None:
            raise click.UsageError(
                f"set ONTHEDOT_DATABASE_URL; `onthedot serve` starts `onthedot {name}` with its own"
            )
        server = importlib.import_module(f"app.server.{name}")
        return uvloop.run(getattr(server, f"run_{name}")(settings, **flags)) or 0

    return run


def _settings() -> list[click.Option]:
    """Return a flag for each setting."""
    return [
        click.Option(
            [f"--{item.name.replace('_', '-')}"], help=f"{item.metadata['help']} [{variable(item.name)}]"
        )
        for item in dataclasses.fields(Settings)
    ]


def _process_command(
    name: str,
    run: Callable[..., int],
    help_text: str,
    *,
    hidden: bool = False,
    switches: Sequence[click.Option] = (),
    below: Sequence[click.Command] = (),
) -> None:
    """Add a command that takes every setting as a flag, and `switches` of its own, which `run` is given.

    `below` it may hang others, such as `worker list`.
    """

    def callback(**flags: Any) -> None:  # noqa: ANN401 - texts of settings, and switches
        if click.get_current_context().invoked_subcommand is not None:
            return
        set_up_logging()
        for unknown in misspelt_variables():
            log.warning("%s names no setting", unknown)
        own = {switch.name: flags.pop(switch.name) for switch in switches if switch.name}
        given = {key: text for key, text in flags.items() if text is not None}
        try:
            settings = Settings.from_env(flags=given)
        except InvalidSetting as error:
            raise click.UsageError(str(error)) from None
        sys.stdout.flush()
        _exit(_outcome(partial(run, **own), settings))

    options: list[click.Parameter] = [*_settings(), *switches]
    command = (
        Nouns(name, params=options, callback=callback, help=help_text, invoke_without_command=True)
        if below
        else click.Command(name, params=options, callback=callback, help=help_text, hidden=hidden)
    )
    if isinstance(command, click.Group):
        for lower in below:
            command.add_command(lower)
    onthedot.add_command(command)


def _outcome(run: Callable[[Settings], int], settings: Settings) -> int:
    """Run and return the exit status; say in one line why it cannot run at all."""
    try:
        return run(settings)
    except CannotStart as error:
        sys.stderr.write(f"onthedot: {error}\n")
        return error.status
    except click.ClickException:
        raise
    except Exception:  # raised further, it would wait for threads that never return
        log.exception("onthedot has failed", extra={"event": "failed"})
        return 1


def _exit(status: int) -> None:
    """Leave at once: a handler that ignored its timeout must not keep its worker from ending."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


_process_command("serve", _serve, "Run everything: API, dashboard, materializer, workers (and the database).")
_process_command(
    "worker",
    _run("worker"),
    "Run one worker process, or look after those that run.",
    switches=[
        click.Option(
            ["--suspects"],
            is_flag=True,
            help="Run only what has ended two workers, one at a time; workers start this by themselves",
        )
    ],
    below=worker.COMMANDS,
)
_process_command("migrate", _migrate, "Bring the database's schema to this version's.")
_process_command("api", _run("api"), "Run one API process.", hidden=True)
_process_command("maintenance", _run("maintenance"), "Run one maintenance process.", hidden=True)

for command in (status, task, job, wf, executions, user, key, queue, cron):
    onthedot.add_command(command)


def main() -> None:
    """Run the command line."""
    onthedot(prog_name="onthedot")
