"""The hot path's statements: one a file, named by its verb, with a header that gives parameters and index."""

from functools import cache
from pathlib import Path

QUERIES_DIR = Path(__file__).parent


@cache
def load(name: str) -> str:
    """Return the text of the statement `name` (`claim_due` lies in `claim_due.sql`)."""
    return (QUERIES_DIR / f"{name}.sql").read_text("utf-8")
