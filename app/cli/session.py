"""What a command that talks to a server has: a client and an output. And the kind of command that has them."""

import sys
from dataclasses import dataclass
from pathlib import Path

import click

from app.cli.failures import Exit, exit_code, explanation
from app.cli.output import Form, Output, note
from app.client.errors import ClientError
from app.client.rest import RestClient
from app.settings import ClientSettings, InvalidSetting

CLIENT_OPTIONS = (
    click.Option(["--url"], metavar="URL", help="Where the server listens [ONTHEDOT_URL]"),
    click.Option(["--token-file"], metavar="FILE", help="File with your API key [ONTHEDOT_TOKEN_FILE]"),
    click.Option(
        ["-o", "--output"],
        type=click.Choice([form.value for form in Form]),
        help="Form of the output; by default a table on a terminal, else tab-separated fields",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Session:
    """One run of a command."""

    client: RestClient
    output: Output


class ClientCommand(click.Command):
    """A command over REST: it has the options of a client, and fails with a code that says how.

    Its function gets the `Session` by `click.pass_obj`.
    """

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the command's own parameters and the client's."""
        return [*super().get_params(ctx), *CLIENT_OPTIONS]

    def invoke(self, ctx: click.Context) -> object:
        """Run the command in a session of its own."""
        form = ctx.params.pop("output")
        flags = {name: text for name in ("url", "token_file") if (text := ctx.params.pop(name)) is not None}
        ctx.obj = Session(client=_client(flags), output=Output(Form(form) if form else None))
        try:
            return super().invoke(ctx)
        except ClientError as error:
            for line in explanation(error, noun=_noun(ctx)):
                note(line)
            ctx.exit(exit_code(error))
        except KeyboardInterrupt:
            note("stopped watching; what runs on the server goes on")
            ctx.exit(Exit.INTERRUPTED)


class Nouns(click.Group):
    """Commands on one kind of thing."""

    command_class = ClientCommand


def confirm(question: str, *, yes: bool) -> None:
    """Ask before something is lost. Where nobody can answer, `--yes` is needed."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(f"{question} Nobody is there to ask: add --yes.")
    click.confirm(question, abort=True, err=True)


def _client(flags: dict[str, str]) -> RestClient:
    try:
        settings = ClientSettings.from_env(flags=flags)
    except InvalidSetting as error:
        raise click.UsageError(str(error)) from None
    return RestClient(settings.url, _key(settings))


def _key(settings: ClientSettings) -> str | None:
    """Return the key of the file that was named, else of a server on this machine where it may be read."""
    try:
        return _read_key(settings.token_file or settings.data_dir / "admin.key")
    except OSError as error:
        if settings.token_file is None:
            return None
        raise click.UsageError(f"the key file cannot be read: {error}") from None


def _read_key(file: Path) -> str:
    key = file.read_text("ascii", errors="replace").strip()
    if not key or not key.isascii() or any(character.isspace() for character in key):
        raise click.UsageError(f"{file} does not hold one API key")
    return key


def _noun(ctx: click.Context) -> str:
    """Return the kind of thing that a command is about; none for one such as `status`."""
    group = ctx.parent
    return (group.info_name or "") if group is not None and group.parent is not None else ""
