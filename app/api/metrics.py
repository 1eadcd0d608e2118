"""`/metrics`: figures for Prometheus. They come from the database, so every API process tells the same."""

import os
from collections.abc import Iterable, Iterator, Mapping

from litestar import Response, get
from litestar.di import NamedDependency
from prometheus_client import CONTENT_TYPE_LATEST, Metric, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily

from app import __version__
from app.api.answers import problem_answers
from app.db.reads.paces import Quantiles
from app.db.reads.queues import QueueReads, QueueView
from app.db.reads.recent import Recent
from app.db.reads.stats import Stats, StatsReads
from app.db.reads.workers import StateCount, WorkerReads

WINDOW_SECONDS = 60
KEPT_SECONDS = 2.0
MOST_QUEUES = 1000


class Metrics:
    """Writes the exposition, at most once in `KEPT_SECONDS`: the address needs no key."""

    def __init__(self, *, stats: StatsReads, queues: QueueReads, workers: WorkerReads) -> None:
        self._stats = stats
        self._queues = queues
        self._workers = workers
        self._process = ProcessCollector(registry=None)
        self._texts = Recent(self._write, seconds=KEPT_SECONDS)

    async def text(self) -> bytes:
        """Return the exposition in Prometheus' text format."""
        return await self._texts.get(WINDOW_SECONDS)

    async def _write(self, window_seconds: int) -> bytes:
        stats = await self._stats.read(window_seconds)
        queues = await self._queues.list_page(limit=MOST_QUEUES, after=None)
        states = await self._workers.count_states()
        return generate_latest(
            _Families(
                [
                    InfoMetricFamily("onthedot_build", "What answers", value={"version": __version__}),
                    *_of_stats(stats),
                    *_of_queues(queues),
                    *_of_workers(states),
                    *_of_process(self._process),
                ]
            )
        )


@get("/metrics", operation_id="getMetrics", tags=["Health"], responses=problem_answers(503))
async def metrics(metrics: NamedDependency[Metrics]) -> Response[bytes]:
    """Tell Prometheus rates, lateness, queues and workers."""
    return Response(await metrics.text(), media_type=CONTENT_TYPE_LATEST)


class _Families:
    """What `generate_latest` collects from."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _of_stats(stats: Stats) -> Iterator[Metric]:
    lately = f"Executions a second, over the last {stats.window_seconds} s"
    yield _gauge("onthedot_created_per_second", f"{lately}: created", {(): stats.created_per_second})
    yield _gauge(
        "onthedot_completed_per_second",
        f"{lately}: completed",
        {(queue,): found.completed_per_second for queue, found in stats.queues.items()},
        labels=("queue",),
    )
    yield _gauge(
        "onthedot_failed_per_second",
        f"{lately}: failed for good",
        {(queue,): found.failed_per_second for queue, found in stats.queues.items()},
        labels=("queue",),
    )
    stages = {
        "due_to_claimed": stats.stages_ms.due_to_claimed,
        "claimed_to_started": stats.stages_ms.claimed_to_started,
        "started_to_completed": stats.stages_ms.started_to_completed,
    }
    text = f"Where the time of executions went that ended within the last {stats.window_seconds} s"
    yield _quantiles("onthedot_stage_seconds", text, stages, label="stage")


def _of_queues(queues: list[QueueView]) -> Iterator[Metric]:
    def gauge(name: str, text: str, values: Mapping[str, float | None]) -> Metric:
        return _gauge(name, text, {(queue,): value for queue, value in values.items()}, labels=("queue",))

    text = "Executions that are due and wait; 10000 means that many or more"
    yield gauge("onthedot_queue_depth", text, {q.queue: q.depth for q in queues})
    yield gauge("onthedot_queue_running", "Executions that run", {q.queue: q.running for q in queues})
    text = "How long the first execution that waits has been due; absent where none waits"
    yield gauge("onthedot_queue_oldest_due_seconds", text, {q.queue: q.oldest_due_seconds for q in queues})
    text = "1 while the queue is paused"
    yield gauge("onthedot_queue_paused", text, {q.queue: float(q.paused is not None) for q in queues})
    text = "How late executions started that ended within the last 5 minutes"
    lateness = {q.queue: q.lateness_ms for q in queues}
    yield _quantiles("onthedot_lateness_seconds", text, lateness, label="queue")


def _of_workers(states: list[StateCount]) -> Iterator[Metric]:
    def gauge(name: str, text: str, values: Mapping[str, float]) -> Metric:
        return _gauge(name, text, {(state,): value for state, value in values.items()}, labels=("state",))

    yield gauge("onthedot_workers", "Worker processes", {s.state: s.workers for s in states})
    text = "Executions that they can run at once"
    yield gauge("onthedot_worker_slots", text, {s.state: s.slots for s in states})
    text = "Executions that they carried at their last heartbeat"
    yield gauge("onthedot_worker_running", text, {s.state: s.running for s in states})


def _of_process(collector: ProcessCollector) -> Iterator[Metric]:
    """Yield this process's own figures under its pid: each API process answers some of the scrapes."""
    for family in collector.collect():
        labelled = Metric(family.name, family.documentation, family.type)
        for sample in family.samples:
            labelled.add_sample(sample.name, sample.labels | {"pid": str(os.getpid())}, sample.value)
        yield labelled


def _gauge(
    name: str, text: str, values: Mapping[tuple[str, ...], float | None], *, labels: tuple[str, ...] = ()
) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for names, value in values.items():
        if value is not None:
            family.add_metric(names, value)
    return family


def _quantiles(name: str, text: str, times_ms: Mapping[str, Quantiles], *, label: str) -> Metric:
    values: dict[tuple[str, ...], float | None] = {
        (key, quantile): None if value is None else value / 1000
        for key, pair in times_ms.items()
        for quantile, value in (("0.5", pair.p50), ("0.99", pair.p99))
    }
    return _gauge(name, text, values, labels=(label, "quantile"))
