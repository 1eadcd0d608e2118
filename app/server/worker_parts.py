"""A worker put together of its parts."""

import asyncio
import os
import socket
from collections.abc import Callable, Sequence
from typing import NamedTuple
from uuid import UUID, uuid4

import msgspec

from app import __version__, machine
from app.db.notifier import HintSender
from app.db.stores.admissions import AdmissionStore, Claimant
from app.db.stores.catalog import Catalog
from app.db.stores.dependencies import DependencyStore
from app.db.stores.effects import EffectStore
from app.db.stores.executions import ExecutionStore
from app.db.stores.limits import LimitStore
from app.db.stores.logs import LogStore
from app.db.stores.workers import WorkerIdentity
from app.db.stores.workflows.runs import RunStore
from app.domain.admission import Host
from app.domain.budget import POLL_SECONDS
from app.domain.claims import LeaseId
from app.domain.hints import Ready
from app.process import Process
from app.settings import Settings
from app.worker.claimer import Claimer
from app.worker.dependents import DependentKeeper
from app.worker.followers import Follower
from app.worker.handlers import HandlerRegistry
from app.worker.lanes import LaneClaimer
from app.worker.leases import LeaseKeeper
from app.worker.pool import WorkerPool
from app.worker.runner import Runner
from app.worker.settler import Settler
from app.worker.slots import Slots
from app.worker.steps import StepKeeper
from app.worker.suspect_claimer import SuspectClaimer
from app.worker.timers import Timers
from app.worker.worker import Worker


class Stores(NamedTuple):
    """What a worker reads and writes by."""

    executions: ExecutionStore
    limits: LimitStore
    catalog: Catalog
    effects: EffectStore
    runs: RunStore


def worker_stores(own: Process, effects: EffectStore, runs: RunStore) -> Stores:
    """Return the stores of a worker."""
    return Stores(ExecutionStore(own.pool), LimitStore(own.pool), Catalog(own.pool), effects, runs)


def identity_of(settings: Settings, *, alone: bool) -> WorkerIdentity:
    """Return who this worker is: another one after each start, wherever it runs."""
    return WorkerIdentity(
        worker_id=uuid4(),
        host=socket.gethostname(),
        pid=os.getpid(),
        version=__version__,
        queues=settings.queues,
        slots=settings.concurrency,
        labels=settings.labels,
        cpu_cores=settings.cpu_cores or machine.cpu_cores(),
        memory_mb=settings.memory_mb or machine.memory_mb(),
        suspects_only=alone,
    )


def admissions_of(own: Process, identity: WorkerIdentity) -> AdmissionStore:
    """Return what claims beside limits, for what this worker offers."""
    host = Host(identity.host, identity.cpu_cores, identity.memory_mb)
    labels = msgspec.json.encode(identity.labels).decode()
    return AdmissionStore(own.pool, Claimant(identity.worker_id, host, labels))


def compose_worker(
    settings: Settings,
    own: Process,
    registry: HandlerRegistry,
    stores: Stores,
    *,
    alone: bool = False,
) -> Worker:
    """Wire a worker; `alone`: one that runs what must run alone.

    Its parts call each other; who is called before it exists is called by name.
    """
    runner, hints = Runner(registry), HintSender(own.pool)
    followers = _followers(own, stores, hints, take=lambda places: worker.take(places))  # noqa: PLW0108 - not made yet
    identity = identity_of(settings, alone=alone)
    leases = _leases(settings, own, identity, on_lost=lambda lost: worker.on_lost(lost))  # noqa: PLW0108
    settler = _settler(
        own,
        stores,
        leases=leases,
        worker_id=identity.worker_id,
        runner=runner,
        followers=followers,
        hint=lambda places: worker.on_hints(places),  # noqa: PLW0108
        on_freed=lambda: worker.on_freed(),  # noqa: PLW0108
    )
    pool = WorkerPool(
        slots=Slots(stores.catalog, total=settings.concurrency, queues=settings.queues),
        runner=runner,
        settler=settler,
        leases=leases,
        catalog=stores.catalog,
        clock=own.clock,
        timeline=own.primary.bind(),
        effects=stores.effects,
        on_free=lambda: worker.on_free(),  # noqa: PLW0108
        on_settle=lambda: worker.on_ended(),  # noqa: PLW0108
    )
    timers = _timers(own, stores, pool=pool, leases=leases)
    claimer = _claimer(
        settings,
        own,
        stores,
        alone=alone,
        admissions=admissions_of(own, identity),
        hints=hints,
        wake=lambda: worker.wake(),  # noqa: PLW0108
        pool=pool,
        timers=timers,
        settler=settler,
        leases=leases,
        worker_id=identity.worker_id,
    )
    worker = Worker(
        worker_id=identity.worker_id,
        executions=stores.executions,
        limits=stores.limits,
        claimer=claimer,
        pool=pool,
        timers=timers,
        settler=settler,
        followers=followers,
        leases=leases,
        hints=hints,
        poll_seconds=POLL_SECONDS,
        grace_seconds=settings.grace_seconds,
        hurry=own.hurry,
    )
    return worker


def _timers(own: Process, stores: Stores, *, pool: WorkerPool, leases: LeaseKeeper) -> Timers:
    return Timers(
        executions=stores.executions,
        clock=own.clock,
        fire=pool.start,
        lost=leases.drop,
        cancelled=pool.drop_cancelled,
    )


def _followers(
    own: Process, stores: Stores, hints: HintSender, *, take: Callable[[list[Ready]], bool]
) -> list[Follower]:
    dependencies = DependencyStore(own.pool)
    return [
        StepKeeper(stores.runs, hints, take=take),
        DependentKeeper(dependencies, hints, stores.catalog, clock=own.clock, take=take),
    ]


def _settler(
    own: Process,
    stores: Stores,
    *,
    leases: LeaseKeeper,
    worker_id: UUID,
    runner: Runner,
    followers: Sequence[Follower],
    hint: Callable[[list[Ready]], None],
    on_freed: Callable[[], None],
) -> Settler:
    return Settler(
        executions=stores.executions,
        logs=LogStore(own.pool),
        limits=stores.limits,
        catalog=stores.catalog,
        clock=own.clock,
        leases=leases,
        worker_id=worker_id,
        hint=hint,
        on_freed=on_freed,
        on_durable=[follower.note for follower in followers],
        effects=stores.effects,
        failed_outcome=runner.failed,
    )


def _leases(
    settings: Settings, own: Process, identity: WorkerIdentity, *, on_lost: Callable[[set[LeaseId]], None]
) -> LeaseKeeper:
    """Return what keeps leases alive from a thread of its own; what it tells is heard on this loop."""
    main_loop = asyncio.get_running_loop()

    def tell(lost: set[LeaseId]) -> None:
        main_loop.call_soon_threadsafe(on_lost, lost)

    return LeaseKeeper(
        own.dsn,
        worker=identity,
        lease_seconds=settings.lease_seconds,
        on_lost=tell,
        on_cut_off=lambda: main_loop.call_soon_threadsafe(own.stop.set),
    )


def _claimer(
    settings: Settings,
    own: Process,
    stores: Stores,
    *,
    alone: bool,
    admissions: AdmissionStore,
    hints: HintSender,
    wake: Callable[[], None],
    pool: WorkerPool,
    timers: Timers,
    settler: Settler,
    leases: LeaseKeeper,
    worker_id: UUID,
) -> Claimer | SuspectClaimer:
    if alone:
        return SuspectClaimer(
            executions=stores.executions,
            admissions=admissions,
            catalog=stores.catalog,
            pool=pool,
            settler=settler,
            leases=leases,
            worker_id=worker_id,
            queues=settings.queues,
            lease_seconds=settings.lease_seconds,
            on_idle=own.stop.set,
        )
    return Claimer(
        executions=stores.executions,
        lanes=LaneClaimer(admissions, clock=own.clock, on_cancels=hints.announce_cancel),
        wake=wake,
        catalog=stores.catalog,
        clock=own.clock,
        pool=pool,
        timers=timers,
        leases=leases,
        worker_id=worker_id,
        queues=settings.queues,
        lease_seconds=settings.lease_seconds,
        lookahead_seconds=settings.lookahead_ms / 1000,
    )
