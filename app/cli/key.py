"""`onthedot key`: API keys of users."""

import click

from app.cli.cells import Column
from app.cli.options import limit_option, yes_option
from app.cli.output import note
from app.cli.session import Nouns, Session, confirm
from app.client.rest import at

COLUMNS = (
    Column("KEY", "key_id"),
    Column("PREFIX", "prefix"),
    Column("NAME", "name"),
    Column("CREATED", "created_at"),
    Column("EXPIRES", "expires_at"),
    Column("LAST_USED", "last_used_at"),
)


@click.group(cls=Nouns)
def key() -> None:
    """API keys of users."""


@key.command("list")
@click.argument("user_id")
@limit_option
@click.pass_obj
def list_keys(session: Session, *, user_id: str, limit: int) -> None:
    """List a user's keys; the keys themselves are not kept."""
    session.output.items(session.client.items(at("users", user_id, "keys"), limit=limit), COLUMNS)


@key.command("create")
@click.argument("user_id")
@click.option("--name", help="What it is for")
@click.option("--expires-at", metavar="TIME", help="RFC 3339 or Unix seconds; without it: never")
@click.pass_obj
def create_key(session: Session, /, *, user_id: str, **fields: str | None) -> None:
    """Make a key, and show it this once.

    \b
    onthedot key create ada --name laptop -o json | jq -r .key > ada.key
    """
    body = {name: value for name, value in fields.items() if value is not None}
    session.output.item(session.client.post(at("users", user_id, "keys"), body))
    note("keep the key now: it is not shown again")


@key.command("delete")
@click.argument("user_id")
@click.argument("key_id")
@yes_option
@click.pass_obj
def delete_key(session: Session, *, user_id: str, key_id: str, yes: bool) -> None:
    """Delete a key; within 5 seconds it is refused everywhere."""
    confirm(f"Delete the key {key_id} of {user_id}?", yes=yes)
    session.client.delete(at("users", user_id, "keys", key_id))
    note(f"deleted key {key_id}")
