"""Tables for terminals."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.cli.cells import Column, lookup, one_line, shown
from app.client.rest import Document

WIDE = 10_000
"""Columns of a table that goes into a file: nothing is cut."""
_STATUSES = {
    "COMPLETED": ("✓", "green"),
    "FAILED": ("✗", "red"),
    "CANCELLED": ("⊘", "yellow"),
    "SKIPPED": ("⊘", "yellow"),
    "RUNNING": ("▶", "blue"),
    "RETRYING": ("↻", "yellow"),
    "live": ("●", "green"),
    "draining": ("◐", "yellow"),
    "stale": ("◌", "yellow"),
    "lost": ("✗", "red"),
}
"""A sign and a colour beside the word; never the colour alone."""


def print_items(items: Iterable[Document], columns: Sequence[Column]) -> None:
    """Print a list as a table."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column.heading, no_wrap=column.field.endswith(("_id", "_at", "_time", "status")))
    for item in items:
        table.add_row(*(_cell(lookup(item, column.field)) for column in columns))
    _console().print(table)


def print_fields(fields: Iterable[tuple[str, object]]) -> None:
    """Print the fields of one thing, a line each."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in fields:
        table.add_row(name, _cell(value))
    _console().print(table)


def _cell(value: object) -> Text:
    text = one_line(shown(value))
    sign, colour = _STATUSES.get(text, ("", ""))
    return Text(f"{sign} {text}" if sign else text, style=colour)


def _console() -> Console:
    """Make a console on stdout as it is now. It honours NO_COLOR and TERM by itself."""
    console = Console(highlight=False, markup=False)
    return console if console.is_terminal else Console(highlight=False, markup=False, width=WIDE)
