"""Executions that must run alone: the process that runs them, and the worker's eye on whether one is needed."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from app.child_process import ChildProcess, onthedot_command
from app.domain.budget import POLL_SECONDS
from app.process import Process
from app.server.worker_parts import admissions_of, identity_of
from app.settings import Settings, child_environment
from app.worker.suspect_keeper import SuspectKeeper
from app.worker.worker import Worker

MARGIN_SECONDS = 2.5
"""What the process gets beyond the grace; its worker gets little more from its own supervisor."""


def for_one(settings: Settings) -> Settings:
    """Return what is left of these settings for one execution at a time."""
    connections = min(1, settings.transaction_connections)
    return replace(settings, concurrency=1, transaction_connections=connections)


def suspect_keeper(
    settings: Settings, own: Process, worker: Worker, *, hears: Callable[[], bool]
) -> SuspectKeeper:
    """Wire the part of a worker process that has `onthedot worker --suspects` run where there are any.

    `hears`: whether this process would hear of them.
    """
    command = onthedot_command("worker", "--suspects")
    environment = partial(_environment, settings)
    return SuspectKeeper(
        admissions=admissions_of(own, identity_of(settings, alone=True)),
        queues=settings.queues,
        make_process=lambda: ChildProcess(
            "worker --suspects", command, environment=environment, until_done=True
        ),
        is_draining=lambda: worker.is_draining,
        hears=hears,
        poll_seconds=POLL_SECONDS,
        patience_seconds=settings.grace_seconds + MARGIN_SECONDS,
        hurry=own.hurry,
    )


def _environment(settings: Settings, supervisor_fd: int) -> dict[str, str]:
    return child_environment(settings, supervisor_fd=supervisor_fd)
