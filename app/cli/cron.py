"""`onthedot cron`: when an expression fires, before anything is made of it."""

import click

from app.cli.output import Form
from app.cli.session import Nouns, Session


@click.group(cls=Nouns)
def cron() -> None:
    """Cron expressions: when they fire."""


@cron.command("explain")
@click.argument("expression")
@click.option("--timezone", "--tz", default="UTC", show_default=True, help="IANA name")
@click.option("--after", metavar="INSTANT", help="As if the job were made then; now, unless said")
@click.option("--count", type=click.IntRange(1, 100), default=5, show_default=True)
@click.option(
    "--gap", type=click.Choice(["run_after_gap", "skip"]), default="run_after_gap", show_default=True
)
@click.option("--fold", type=click.Choice(["first", "second", "both"]), default="first", show_default=True)
@click.pass_obj
def explain(session: Session, /, *, expression: str, after: str | None, count: int, **schedule: str) -> None:
    """Say an EXPRESSION in words, with its next instants and what to know about it, by the engine that fires.

    onthedot cron explain "0 3 * * 1-5" --tz Europe/Berlin
    """
    wish = {"type": "RECURRING", "expression": expression, **schedule}
    found = session.client.post(
        "/schedules/preview", {"schedule": wish, "count": count} | ({"after": after} if after else {})
    )
    if session.output.form in {Form.JSON, Form.JSONL}:
        session.output.item(found)
        return
    click.echo(found["description"])
    for instant in found["occurrences"]:
        click.echo(instant)
    for warning in found["warnings"]:
        click.echo(f"! {warning['detail']}")
