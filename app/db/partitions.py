"""Daily partitions of what grows: made ahead of time, dropped when retention ends."""

from datetime import UTC, date, datetime, timedelta

from sqlalchemy import Connection, text

DAILY = ("execution_history", "attempts", "execution_logs")
DAYS_AHEAD = 14


def ensure(connection: Connection, *, days_ahead: int = DAYS_AHEAD) -> None:
    """Make the partitions of today and the coming days, by the database's date, where they are missing.

    The caller holds a lock or does not mind that two makers meet: `IF NOT EXISTS` lets the second one pass.
    """
    today = connection.scalar(text("SELECT (now() AT TIME ZONE 'UTC')::date"))
    for table in DAILY:
        for offset in range(-1, days_ahead + 1):
            connection.execute(text(create_statement(table, today + timedelta(days=offset))))


def create_statement(table: str, day: date) -> str:
    """Return the DDL of one day's partition, e.g. `execution_history_20260131`."""
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    end = start + timedelta(days=1)
    return (
        f"CREATE TABLE IF NOT EXISTS onthedot.{table}_{day:%Y%m%d} PARTITION OF onthedot.{table}"
        f" FOR VALUES FROM ('{start.isoformat()}') TO ('{end.isoformat()}')"
    )
