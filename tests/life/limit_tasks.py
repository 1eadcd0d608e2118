"""A handler that writes down when it begins and when it ends, by the clock that all processes of a machine share."""

import asyncio
import os
import time
from functools import cache
from pathlib import Path

from app import Context, task

FOLDER = "LIMIT_EFFECTS"
"""The variable that names the folder of the journals, one a process."""


@task
async def limited(context: Context) -> None:
    """Take the time that the parameters say."""
    _note("begin", context)
    try:
        await asyncio.sleep(context.parameters["seconds"])
    finally:
        _note("end", context)


@cache
def _journal() -> int:
    path = Path(os.environ[FOLDER]) / str(os.getpid())
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)


def _note(what: str, context: Context) -> None:
    line = f"{time.monotonic()} {what} {os.getpid()} {context.execution_id} {context.fencing_token}\n"
    os.write(_journal(), line.encode())
