"""Handlers for tests of workers that end: one that ends its process, and one that is there when it does."""

import os
import time
from pathlib import Path

from app import Context, task

POLL_SECONDS = 0.01


def _note(ctx: Context) -> None:
    """Write down who runs in which process, whatever becomes of it."""
    with Path(ctx.parameters["journal"]).open("a", encoding="utf-8") as journal:
        journal.write(f"{ctx.execution_id} {os.getpid()}\n")


def _running_here(ctx: Context) -> int:
    return Path(ctx.parameters["journal"]).read_text(encoding="utf-8").count(f" {os.getpid()}\n")


@task
def poison(ctx: Context) -> None:
    """End the process, as a crash in native code does; in the first attempts not before its neighbours run."""
    _note(ctx)
    while ctx.attempt_number <= 2 and _running_here(ctx) <= ctx.parameters["neighbours"]:
        time.sleep(POLL_SECONDS)
    os._exit(137)


@task
def wait(ctx: Context) -> None:
    """Run until a file is there."""
    _note(ctx)
    while not Path(ctx.parameters["until"]).exists():
        time.sleep(POLL_SECONDS)
