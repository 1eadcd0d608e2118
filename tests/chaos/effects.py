"""E: the task whose handler writes down that it began and how it ended. Workers import it as a task module.

Parameters: `key`; `seconds` it takes; `fails`, how many first attempts do; `blocks`, at the first attempt: `sleep`
holds up the event loop, `gil` the whole interpreter, for a regular expression of `length`.
"""

import asyncio
import os
import re
import time
from functools import cache
from pathlib import Path
from uuid import uuid4

from app import Context, task
from tests.chaos.journals import Effect, Journal, now

FOLDER = "CHAOS_EFFECTS"
"""The variable that names the folder of the journal."""


@task("effect")
async def effect(context: Context) -> dict[str, int]:
    """Do as the parameters say; what comes back, and what is raised, carries the fencing token."""
    _note(context, "start")
    try:
        await _work(context)
    except asyncio.CancelledError:
        _note(context, "stopped")
        raise
    if context.attempt_number <= context.parameters.get("fails", 0):
        _note(context, "failed")
        raise RuntimeError(f"token {context.fencing_token}")
    _note(context, "ok")
    return {"token": context.fencing_token}


async def _work(context: Context) -> None:
    seconds = float(context.parameters.get("seconds", 0))
    match context.parameters.get("blocks") if context.attempt_number == 1 else None:
        case "sleep":
            time.sleep(seconds)  # noqa: ASYNC251 - that is what it is for
        case "gil":
            hold_interpreter(int(context.parameters["length"]))
        case _ if seconds:
            await asyncio.sleep(seconds)


def hold_interpreter(length: int) -> None:
    """Let no other thread of this process run for a while, which doubles with each unit of `length`."""
    re.fullmatch("(a+)+b", "a" * length)


def length_for(seconds: float) -> int:
    """Return the length that holds the interpreter for at least so long, on this machine."""
    length, took = 16, 0.0
    while took < 0.05:
        length += 1
        began = time.thread_time()  # others that use this machine now may not do so later
        hold_interpreter(length)
        took = time.thread_time() - began
    while took < seconds:
        length, took = length + 1, 2 * took
    return length


@cache
def _journal() -> Journal:
    return Journal(Path(os.environ[FOLDER]) / f"{os.getpid()}-{uuid4().hex}.jsonl")


def _note(context: Context, phase: str) -> None:
    _journal().append(
        Effect(
            phase=phase,
            execution_id=str(context.execution_id),
            job_id=str(context.job_id),
            key=str(context.parameters.get("key", "")),
            attempt=context.attempt_number,
            token=context.fencing_token,
            pid=os.getpid(),
            at=now(),
            wall=time.time(),
        )
    )
