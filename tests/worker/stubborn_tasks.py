"""A function that no timeout ends."""

import time

from app import Context, task


@task
def stubborn(_ctx: Context) -> None:
    """Heed nothing."""
    time.sleep(600)
