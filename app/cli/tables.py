"""Tables for people. The consoles honour NO_COLOR and TERM by themselves."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.cli.cells import Column, lookup, one_line, shown
from app.client.rest import Document

WIDE = 10_000
"""Characters. A list is as wide as what it shows: an id that was cut cannot be copied."""
LONGEST_CELL = 80
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
        table.add_column(column.heading)
    for item in items:
        cells = [_cell(lookup(item, column.field)) for column in columns]
        for cell in cells:
            cell.truncate(LONGEST_CELL, overflow="ellipsis")
        table.add_row(*cells)
    Console(highlight=False, markup=False, width=WIDE).print(table)


def print_fields(fields: Iterable[tuple[str, object]]) -> None:
    """Print the fields of one thing, a line each; on a terminal a long one is folded."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in fields:
        table.add_row(name, _cell(value))
    console = Console(highlight=False, markup=False)
    console.print(table, width=None if console.is_terminal else WIDE)


def _cell(value: object) -> Text:
    text = one_line(shown(value))
    sign, colour = _STATUSES.get(text, ("", ""))
    return Text(f"{sign} {text}" if sign else text, style=colour)
