"""Functions that run in processes of their own."""

import asyncio
import logging
import mmap
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from app import Context, task


class Refused(ConnectionError):
    """Says later."""

    category = "rate_limiting"
    retry_after_seconds = 0.01
    http_status = 429


class Unlucky(Exception):
    """Has its own text."""


@task(isolation="process")
def about(ctx: Context) -> dict[str, Any]:
    """Return what it is told, and where it is."""
    return {
        "pid": os.getpid(),
        "main_thread": threading.current_thread() is threading.main_thread(),
        "execution_id": ctx.execution_id,
        "job_id": ctx.job_id,
        "attempt_number": ctx.attempt_number,
        "scheduled_time": ctx.scheduled_time,
        "fencing_token": ctx.fencing_token,
        "timeout_seconds": ctx.timeout_seconds,
        "parameters": ctx.parameters,
        "environment": dict(os.environ),
        "descriptors": {path.name: _target(path) for path in Path("/proc/self/fd").iterdir()},
    }


def _target(path: Path) -> str:
    try:
        return str(path.readlink())
    except FileNotFoundError:  # of the listing itself
        return ""


@task("about.async", isolation="process")
async def about_async(_ctx: Context) -> int:
    """Return its process."""
    await asyncio.sleep(0)
    return os.getpid()


@task(isolation="process")
def talk(ctx: Context) -> None:
    """Write in every way there is."""
    print("printed")
    ctx.logger.warning("logged %s", "so")
    print("to stderr", file=sys.stderr)
    logging.getLogger("mine").info("by a logger")
    thread = threading.Thread(target=print, args=("from a thread",))
    thread.start()
    thread.join()
    print("half a ", end="")
    print("line", end="")


@task(isolation="process")
def whisper(_ctx: Context) -> None:
    """Write past Python."""
    os.write(1, b"raw\n")
    subprocess.run(["sh", "-c", "echo of a process; echo complaint >&2"], check=True)


@task(isolation="process")
def fail(ctx: Context) -> None:
    """Raise what the parameter names."""
    match ctx.parameters["how"]:
        case "refused":
            raise Refused("not now")
        case "unlucky":
            raise Unlucky("bad luck")
        case "exits":
            sys.exit(3)


@task(isolation="process")
def die(ctx: Context) -> None:
    """End without a word."""
    if "status" in ctx.parameters:
        os._exit(ctx.parameters["status"])
    os.kill(os.getpid(), ctx.parameters["signal"])


@task(isolation="process", memory_mb=128)
def hoard(ctx: Context) -> int:
    """Take memory, at once or bit by bit."""
    if ctx.parameters.get("how") == "bits":
        kept: Any = None
        sizes = [2**20, 2**14, *range(512, 0, -16)]
        for size in sizes:  # at the end not even little is left to tell it with
            try:
                while True:
                    kept = (kept, bytes(size))
            except MemoryError:
                if size == sizes[-1]:
                    raise
    return len(bytearray(ctx.parameters["mb"] * 2**20)) // 2**20


@task(isolation="process")
def map_memory(_ctx: Context) -> None:
    """Take memory by another way."""
    kept = [mmap.mmap(-1, 2**20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) for _ in range(2000)]
    for each in kept:
        each.write(b"x" * 2**20)


@task(isolation="process")
def deaf(_ctx: Context) -> None:
    """Heed nothing, with a child that heeds nothing."""
    child = subprocess.Popen(["sh", "-c", "trap '' TERM; sleep 600"])
    print(f"pids {os.getpid()} {child.pid}", flush=True)
    while True:
        time.sleep(600)


@task(isolation="process")
def heeds(ctx: Context) -> None:
    """End when it is asked to."""
    print(f"pids {os.getpid()}", flush=True)
    while not ctx.cancelled:
        time.sleep(0.01)
    print("tidied up")


@task("heeds.async", isolation="process")
async def heeds_async(_ctx: Context) -> None:
    """End when it is cancelled."""
    print(f"pids {os.getpid()}", flush=True)
    try:
        await asyncio.sleep(600)
    finally:
        print("tidied up")


@task("once", isolation="process")
def do_once(ctx: Context) -> Any:
    """Do something once over all attempts."""

    def effect() -> dict[str, int]:
        print("done")
        return {"in_attempt": ctx.attempt_number}

    result = ctx.once("effect", effect)
    if ctx.attempt_number == 1:
        raise Unlucky("after the effect")
    return result


@task("once.async", isolation="process")
async def once_async(ctx: Context) -> Any:
    """Do the same in an event loop."""

    async def effect() -> int:
        await asyncio.sleep(0)
        return 7

    return [await ctx.once("effect", effect), await ctx.once("effect", effect)]


@task("once.badly", isolation="process")
def once_badly(ctx: Context) -> None:
    """Use a key that is none."""
    ctx.once("", lambda: 1)


@task("once.late", isolation="process")
def once_late(ctx: Context) -> None:
    """Do something after the lease was lost."""
    while not Path(ctx.parameters["go"]).exists():
        time.sleep(0.01)
    try:
        ctx.once("effect", lambda: 1)
    except Exception as error:
        Path(ctx.parameters["told"]).write_text(f"{type(error).__name__}: {error}")
        raise


@task(isolation="process")
def transact(ctx: Context) -> None:
    """Ask for what there is not."""
    with ctx.transaction():
        pass


@task(isolation="process")
def leave_behind(ctx: Context) -> None:
    """Return while a process goes on and holds the pipes."""
    child = subprocess.Popen(["sleep", "600"], start_new_session=ctx.parameters["own_session"])
    print(f"pids {child.pid}", flush=True)


@task(isolation="process")
def wait_forever(ctx: Context) -> None:
    """Wait, with a process that waits."""
    child = subprocess.Popen(["sleep", "600"])
    with Path(ctx.parameters["path"]).open("a") as file:
        file.write(f"{os.getpid()} {os.getppid()} {child.pid}\n")
    time.sleep(600)
