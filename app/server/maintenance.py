"""The maintenance process: materializer, reaper, expirer, workflows, resumer, rollups, retention, a watch, …"""

import asyncio

from app.db.engine import open_engine
from app.db.notifier import ECHO_EVERY_SECONDS, HintListener, HintSender
from app.db.open_transactions import OpenTransactions
from app.db.pools import Pool, open_pool
from app.db.stores.dependencies import DependencyStore
from app.db.stores.executions import ExecutionStore
from app.db.stores.expiry import ExpiryStore
from app.db.stores.job_control import JobControl
from app.db.stores.limits import LimitStore
from app.db.stores.pauses import PauseStore
from app.db.stores.retention import RetentionStore
from app.db.stores.rollups import RollupStore
from app.db.stores.schedules import ScheduleStore
from app.db.stores.work_to_do import WorkToDo
from app.db.stores.workflows.definitions import DefinitionStore
from app.db.stores.workflows.runs import RunStore
from app.db.stores.zone_rules import ZoneRulesStore
from app.domain.budget import POLL_SECONDS, UNASKED_EVERY_SECONDS
from app.domain.timezones import tzdata_version
from app.loop import Loop
from app.maintenance.dependencies import DependencyKeeper
from app.maintenance.expirer import Expirer
from app.maintenance.limits import LimitKeeper
from app.maintenance.lookout import Lookout
from app.maintenance.partitions import PartitionKeeper
from app.maintenance.reaper import Reaper
from app.maintenance.resumer import Resumer
from app.maintenance.retention import Retention
from app.maintenance.rollups import Rollups
from app.maintenance.transaction_watch import TransactionWatch
from app.maintenance.workflows import WorkflowKeeper
from app.maintenance.zone_rules import ZoneRules
from app.process import STATEMENT_TIMEOUT_SECONDS, Process, process
from app.scheduler.materializer import Materializer
from app.settings import Settings

MAINTENANCE_CONNECTIONS = 2
PARTITIONS_EVERY_SECONDS = 3600.0
RETENTION_EVERY_SECONDS = 600.0
ROLLUPS_EVERY_SECONDS = 5.0
TRANSACTIONS_EVERY_SECONDS = 10.0
ZONE_RULES_EVERY_SECONDS = 60.0
"""They change with the program; after the first look there is nothing to do."""


async def run_maintenance(settings: Settings) -> None:
    """Materialise, reap, expire, resume, count, keep partitions and delete what is old until SIGTERM."""
    async with process(
        settings, "maintenance", connections=MAINTENANCE_CONNECTIONS, by_index_only=True
    ) as own:
        engine = open_engine(
            own.dsn,
            size=1,
            application_name="onthedot maintenance",
            statement_timeout_seconds=STATEMENT_TIMEOUT_SECONDS,
        )
        own.stack.push_async_callback(engine.dispose)
        executions = ExecutionStore(own.pool)
        limits, hints = LimitStore(own.pool), HintSender(own.pool)
        materializer = Materializer(
            schedules=ScheduleStore(own.pool), hints=hints, horizon_seconds=settings.horizon_seconds
        )
        resumer = Resumer(
            pauses=PauseStore(own.pool),
            jobs=JobControl(own.pool, horizon_seconds=settings.horizon_seconds),
            hints=hints,
        )
        zone_rules = ZoneRules(
            ZoneRulesStore(own.pool), hints=hints, plan=materializer.plan, version=tzdata_version()
        )
        retention = await _retention(own, days=settings.retention_days)
        reaper = Reaper(
            executions=executions,
            limits=limits,
            hints=hints,
            clock=own.clock,
            lease_seconds=settings.lease_seconds,
        )
        dependencies = DependencyKeeper(DependencyStore(own.pool), hints=hints, clock=own.clock)
        workflows = WorkflowKeeper(RunStore(own.pool, DefinitionStore(), own.clock), hints=hints)
        watch = TransactionWatch(OpenTransactions(engine))
        woken = {
            "materializer": materializer.tick,
            "expirer": Expirer(expiries=ExpiryStore(own.pool)).tick,
            "limits": LimitKeeper(limits).tick,
            "dependencies": dependencies.tick,
            "workflows": workflows.tick,
            "resumer": resumer.tick,
        }
        waiting = {
            name: Loop(name, tick, interval_seconds=UNASKED_EVERY_SECONDS) for name, tick in woken.items()
        }
        planning = waiting["materializer"]
        wake = {name: loop.wake for name, loop in waiting.items()} | {"suspects": hints.announce_suspects}
        lookout = Lookout(WorkToDo(await _connection(own, "lookout", by_index_only=True)), wake=wake)
        listener = HintListener(own.dsn, on_schedules=planning.wake)
        own.stack.push_async_callback(listener.close)
        loops = [
            *waiting.values(),
            Loop("lookout", lookout.tick, interval_seconds=POLL_SECONDS, max_backoff_seconds=1.0),
            Loop("listener", listener.tick, interval_seconds=ECHO_EVERY_SECONDS),
            Loop("reaper", reaper.tick, interval_seconds=min(1.0, settings.lease_seconds / 4)),
            Loop("zone rules", zone_rules.tick, interval_seconds=ZONE_RULES_EVERY_SECONDS),
            Loop("rollups", Rollups(RollupStore(own.pool)).tick, interval_seconds=ROLLUPS_EVERY_SECONDS),
            Loop("transactions", watch.tick, interval_seconds=TRANSACTIONS_EVERY_SECONDS),
            Loop("partitions", PartitionKeeper(engine).tick, interval_seconds=PARTITIONS_EVERY_SECONDS),
            Loop("retention", retention.tick, interval_seconds=RETENTION_EVERY_SECONDS),
        ]
        for loop in loops:
            loop.start()
        own.report_ready()
        await own.stop.wait()
        await asyncio.gather(*(loop.stop() for loop in loops))
        await hints.close()


async def _retention(own: Process, *, days: int) -> Retention:
    """Return what deletes, with a connection that is there for moments and plans as it sees fit: what is old is found
    by BRIN indexes, which are read as bitmaps."""
    pool = await _connection(own, "retention", on_demand=True)
    return Retention(pool, RetentionStore(pool, days=days), days=days)


async def _connection(
    own: Process, name: str, *, by_index_only: bool = False, on_demand: bool = False
) -> Pool:
    """Return a pool of one connection for a part of its own, which ends with the process."""
    pool = await open_pool(
        own.dsn,
        size=1,
        application_name=f"onthedot {name}",
        statement_timeout_seconds=STATEMENT_TIMEOUT_SECONDS,
        by_index_only=by_index_only,
        on_demand=on_demand,
    )
    own.stack.push_async_callback(pool.close)
    return pool
