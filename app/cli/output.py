"""What commands print: data on stdout, in the form that was asked for, and messages on stderr."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

import click
import msgspec

from app.cli.cells import Column, flattened, lookup, one_line, text_of
from app.client.rest import Document


class Form(StrEnum):
    """A form of output."""

    TABLE = "table"
    TSV = "tsv"
    JSON = "json"
    JSONL = "jsonl"


class Output:
    """Prints in one form: as chosen, else a table on a terminal and tab-separated fields into a pipe or a file."""

    def __init__(self, form: Form | None) -> None:
        self.form = form or (Form.TABLE if sys.stdout.isatty() else Form.TSV)

    def items(self, items: Iterable[Document], columns: Sequence[Column]) -> None:
        """Print a list. JSON is `{"items": […]}` with whole items, JSONL an item a line."""
        match self.form:
            case Form.JSON:
                _print_json({"items": list(items)})
            case Form.JSONL:
                for item in items:
                    click.echo(msgspec.json.encode(item))
            case Form.TSV:
                found = list(items)  # before the headings: a list that cannot be read prints nothing
                click.echo("\t".join(column.heading for column in columns))
                for item in found:
                    click.echo("\t".join(one_line(text_of(lookup(item, column.field))) for column in columns))
            case Form.TABLE:
                from app.cli.tables import (
                    print_items,
                )  # loads rich, which most commands in scripts never need

                print_items(items, columns)

    def item(self, item: Mapping[str, Any], *, fields: Sequence[tuple[str, object]] | None = None) -> None:
        """Print one thing: all its fields, nested ones by their whole names; as lines `fields` instead, if given."""
        shown = flattened(item) if fields is None else fields
        match self.form:
            case Form.JSON:
                _print_json(item)
            case Form.JSONL:
                click.echo(msgspec.json.encode(item))
            case Form.TSV:
                for name, value in shown:
                    click.echo(f"{name}\t{one_line(text_of(value))}")
            case Form.TABLE:
                from app.cli.tables import print_fields

                print_fields(shown)

    def lines(self, lines: Iterable[Document], message: str) -> None:
        """Print captured lines: each one's field `message`, or in JSON whole ones, an item a line."""
        for line in lines:
            if self.form in {Form.JSON, Form.JSONL}:
                click.echo(msgspec.json.encode(line))
            else:
                text = str(line[message])
                click.echo(one_line(text) if sys.stdout.isatty() else text)


def note(text: str) -> None:
    """Tell people what happened, on stderr."""
    click.echo(text, err=True)


def _print_json(value: object) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))
