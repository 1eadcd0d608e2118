"""The figures of the whole house."""

from collections.abc import Mapping

import msgspec

from app.db.reads.paces import Pace, PaceReads, Paces, Quantiles, QueueLoad


class Lateness(msgspec.Struct, frozen=True, kw_only=True):
    """How late executions started: first start - first `due_at`."""

    p50: float | None
    p99: float | None
    max: float | None


class Stages(msgspec.Struct, frozen=True, kw_only=True):
    """Where the time of an execution's last attempt went."""

    due_to_claimed: Quantiles
    """0 where a worker had leased it ahead of its instant."""
    claimed_to_started: Quantiles
    started_to_completed: Quantiles


class QueueStats(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one queue."""

    due: int
    running: int
    oldest_due_seconds: float | None
    completed_per_second: float
    failed_per_second: float
    lateness_ms: Lateness


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """Rates and times within the window, at most 2 s old; `due` and `running` as they are now.

    Of each queue the newest 10,000 ends are measured: a busier one's figures are over a shorter time.
    """

    window_seconds: int
    created_per_second: float
    completed_per_second: float
    failed_per_second: float
    running: int
    due: int
    """Counted to 10,000 in each queue."""
    lateness_ms: Lateness
    stages_ms: Stages
    queues: Mapping[str, QueueStats]


class StatsReads:
    """Reads the figures."""

    def __init__(self, paces: PaceReads) -> None:
        self._paces = paces

    async def read(self, window_seconds: int) -> Stats:
        """Return the figures of the last `window_seconds`."""
        loads = await self._paces.loads()
        paces = await self._paces.paces(window_seconds)
        return Stats(
            window_seconds=window_seconds,
            created_per_second=round(await self._paces.created_per_second(window_seconds), 3),
            completed_per_second=round(paces.overall.completed_per_second, 3),
            failed_per_second=round(paces.overall.failed_per_second, 3),
            running=sum(load.running for load in loads.values()),
            due=sum(load.depth for load in loads.values()),
            lateness_ms=_lateness(paces.overall),
            stages_ms=Stages(
                due_to_claimed=paces.overall.due_to_claimed,
                claimed_to_started=paces.overall.claimed_to_started,
                started_to_completed=paces.overall.started_to_completed,
            ),
            queues=_queues(loads, paces),
        )


def _queues(loads: Mapping[str, QueueLoad], paces: Paces) -> dict[str, QueueStats]:
    idle = Pace()
    return {queue: _queue(load, paces.queues.get(queue, idle)) for queue, load in sorted(loads.items())}


def _queue(load: QueueLoad, pace: Pace) -> QueueStats:
    return QueueStats(
        due=load.depth,
        running=load.running,
        oldest_due_seconds=load.oldest_due_seconds,
        completed_per_second=round(pace.completed_per_second, 3),
        failed_per_second=round(pace.failed_per_second, 3),
        lateness_ms=_lateness(pace),
    )


def _lateness(pace: Pace) -> Lateness:
    return Lateness(p50=pace.lateness.p50, p99=pace.lateness.p99, max=pace.lateness_max)
