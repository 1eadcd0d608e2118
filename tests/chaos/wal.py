"""W: every committed change of executions, in the order of commits, out of PostgreSQL's own log.

A logical slot is made before the run and read after it: the engine cannot know, and what it does wrong cannot hide.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime

import psycopg

from tests.chaos.journals import Change

SLOT = "chaos"
PLUGIN = "test_decoding"
OPTIONS = ("include-timestamp", "on", "skip-empty-xacts", "on")
KEPT = frozenset(
    {
        "execution_id", "job_id", "status", "lease_epoch", "attempt_number", "max_attempts", "worker_id",
        "lease_expires_at", "due_at", "scheduled_time", "run_key", "parameters", "result", "error", "outcome",
        "worker_deaths",
    }
)  # fmt: skip
"""Columns that the checker looks at."""
_TABLE = re.compile(r"table onthedot\.(executions|execution_history|attempts)_\w+: (INSERT|UPDATE|DELETE): ")
_COLUMN = re.compile(r"(\w+)\[(?:[^\[\]]|\[\])*\]:('(?:[^']|'')*'|[^ ]+)")
_COMMIT = re.compile(r"COMMIT \d+ \(at (.*)\)")


def make_slot(dsn: str, *, name: str = SLOT) -> None:
    """Begin to keep the log: from here on every commit can be read. The role needs REPLICATION."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SELECT pg_create_logical_replication_slot(%s, %s)", [name, PLUGIN])


def read_slot(dsn: str, *, name: str = SLOT) -> list[Change]:
    """Return all changes since the slot was made; it may be read again."""
    query = "SELECT data FROM pg_logical_slot_peek_changes(%s, NULL, NULL, VARIADIC %s::text[])"
    with psycopg.connect(dsn, autocommit=True) as connection, connection.cursor() as cursor:
        return list(changes(row[0] for row in cursor.stream(query, [name, list(OPTIONS)])))


def changes(lines: Iterable[str]) -> Iterator[Change]:
    """Turn what the plugin prints into changes: those of a transaction come when its commit is read."""
    transaction, pending = 0, list[tuple[str, str, dict[str, str | None]]]()
    for line in lines:
        if match := _TABLE.match(line):
            pending.append((match[1], match[2].lower(), _columns(line, match.end())))
        elif (match := _COMMIT.fullmatch(line)) and pending:
            transaction += 1
            at = datetime.fromisoformat(match[1]).timestamp()
            for table, action, columns in pending:
                yield Change(
                    transaction=transaction, at=at, table=table, action=action,
                    execution_id=columns.get("execution_id") or "", columns=columns,
                )  # fmt: skip
            pending = []
        elif match:
            continue
        elif line.startswith("BEGIN"):
            pending = []


def _columns(line: str, position: int) -> dict[str, str | None]:
    """Read `name[type]:value …`; of an update whose key has changed only the new row counts."""
    new = line.find("new-tuple: ", position)
    found = _COLUMN.findall(line, new if new >= 0 else position)
    return {name: _value(text) for name, text in found if name in KEPT}


def _value(text: str) -> str | None:
    if text == "null":
        return None
    return text[1:-1].replace("''", "'") if text.startswith("'") else text
