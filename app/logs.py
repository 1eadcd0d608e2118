"""Logging of our own processes: text for a terminal, a JSON object a line for everything else."""

import logging
import sys
from datetime import UTC, datetime

import msgspec

_STANDARD = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and whatever `extra` holds."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        document: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        } | _extra(record)
        if record.exc_info:
            document["traceback"] = self.formatException(record.exc_info)
        return msgspec.json.encode(document, enc_hook=repr).decode()


class TextFormatter(logging.Formatter):
    """A line for people, with `extra` as key=value behind it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, with a traceback under it where there is one."""
        extra = "".join(f" {key}={value}" for key, value in _extra(record).items() if key != "event")
        return super().format(record) + extra


def set_up_logging(*, level: int = logging.INFO) -> None:
    """Log to standard error; standard output belongs to the ready line and to handlers."""
    handler = logging.StreamHandler(sys.stderr)
    text = TextFormatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    handler.setFormatter(text if sys.stderr.isatty() else JsonFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging.getLogger("_granian").setLevel(
        logging.ERROR
    )  # it calls its embedded mode experimental at each start
    logging.getLogger("alembic").setLevel(logging.WARNING)


def _extra(record: logging.LogRecord) -> dict[str, object]:
    return {key: value for key, value in vars(record).items() if key not in _STANDARD}
