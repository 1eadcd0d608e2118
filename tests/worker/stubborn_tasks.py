"""Functions that no timeout ends."""

import time

from app import Context, task


@task
def stubborn(_ctx: Context) -> None:
    """Heed nothing."""
    time.sleep(600)


@task
async def blocking(_ctx: Context) -> None:
    """Keep the event loop from turning."""
    time.sleep(600)  # noqa: ASYNC251 - that is what it is about
