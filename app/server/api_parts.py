"""What the API and the pages are made of, in groups that belong together."""

from app.api.jobs import JobCreation
from app.api.metrics import Metrics
from app.api.waiting import Awaited
from app.db.clock import DatabaseClock
from app.db.engine import Engine
from app.db.notifier import HintSender
from app.db.pools import Pool
from app.db.reads.attempts import StoryReads
from app.db.reads.audit import AuditReads
from app.db.reads.durations import DurationReads
from app.db.reads.ends import EndReads
from app.db.reads.execution_list import ExecutionListReads
from app.db.reads.execution_log import LogReads
from app.db.reads.execution_story import ExecutionStories
from app.db.reads.executions import ExecutionReads
from app.db.reads.explanations import ExplanationReads
from app.db.reads.job_list import JobListReads
from app.db.reads.job_policy import JobPolicyReads
from app.db.reads.job_runs import JobRunReads
from app.db.reads.jobs import JobReads
from app.db.reads.overview import OverviewReads
from app.db.reads.paces import PaceReads
from app.db.reads.queues import QueueReads
from app.db.reads.rates import RateReads
from app.db.reads.stats import StatsReads
from app.db.reads.tasks import TaskReads
from app.db.reads.users import SummaryReads
from app.db.reads.workers import WorkerReads
from app.db.reads.workflow_runs import WorkflowRunReads
from app.db.reads.workflow_steps import StepReads
from app.db.reads.workflows import WorkflowReads
from app.db.stores.access import AccessStore
from app.db.stores.backfill import BackfillStore
from app.db.stores.execution_control import ExecutionControl
from app.db.stores.fleet import FleetStore
from app.db.stores.job_control import JobControl
from app.db.stores.jobs import JobStore
from app.db.stores.keys import KeyStore
from app.db.stores.queues import QueueStore
from app.db.stores.tasks import TaskStore
from app.db.stores.unique_jobs import UniqueJobStore
from app.db.stores.users import UserStore
from app.db.stores.workflows.control import RunControl
from app.db.stores.workflows.definitions import DefinitionStore
from app.db.stores.zones import ZoneAliasStore
from app.intake.backfill import BackfillIntake
from app.intake.changes import ChangeIntake
from app.intake.group_commit import GroupCommit
from app.intake.jobs import JobIntake
from app.intake.planner import JobPlanner
from app.intake.workflows import WorkflowIntake
from app.settings import Settings
from app.ui.change_feed import ChangeFeed
from app.ui.house import House
from app.ui.job_detail import JobDetails
from app.ui.job_look import JobDesk
from app.ui.job_rows import JobTable
from app.ui.login_limits import LoginLimits


def intakes(
    engine: Engine,
    pool: Pool,
    clock: DatabaseClock,
    hints: HintSender,
    awaited: Awaited,
    *,
    tasks: TaskStore,
    queues: QueueStore,
    settings: Settings,
) -> dict[str, object]:
    """Make what takes in jobs, workflows, and changes of them."""
    aliases, job_reads, store = ZoneAliasStore(engine), JobReads(engine), JobStore(pool)
    jobs = JobIntake(
        planner=JobPlanner(
            tasks=tasks,
            queues=queues,
            access=AccessStore(engine),
            aliases=aliases,
            reads=job_reads,
            clock=clock,
        ),
        jobs=store,
        commits=GroupCommit(store),
        counted_commits=GroupCommit(JobStore(pool, counts=True)),
        unique_commits=GroupCommit(UniqueJobStore(pool)),
        hints=hints,
        clock=clock,
    )
    changes = ChangeIntake(
        jobs=JobControl(pool, horizon_seconds=settings.horizon_seconds),
        executions=ExecutionControl(pool),
        reads=job_reads,
        tasks=tasks,
        queues=queues,
        aliases=aliases,
        hints=hints,
        clock=clock,
    )
    reads = WorkflowReads(engine)
    workflows = WorkflowIntake(
        jobs=jobs,
        changes=changes,
        runs=RunControl(pool, DefinitionStore(), clock),
        reads=reads,
        tasks=tasks,
        queues=queues,
        hints=hints,
    )
    return {
        "jobs": jobs,
        "job_creation": JobCreation(jobs, awaited),
        "changes": changes,
        "backfills": BackfillIntake(backfills=BackfillStore(pool), hints=hints),
        "workflows": workflows,
        "workflow_reads": reads,
        "run_reads": WorkflowRunReads(engine),
    }


def page_parts(engine: Engine, clock: DatabaseClock, change_feed: ChangeFeed) -> dict[str, object]:
    """Make what pages have for themselves: reads that give up early, and what keeps pages up to date."""
    audit, job_table = AuditReads(engine), JobTable(JobReads(engine), JobRunReads(engine))
    paces = PaceReads(engine, clock)
    return {
        "audit_reads": audit,
        "change_feed": change_feed,
        "execution_reads": ExecutionReads(engine),
        "execution_list": ExecutionListReads(engine),
        "stories": ExecutionStories(engine, ExplanationReads(engine, paces, clock)),
        "log_reads": LogReads(engine),
        "durations": DurationReads(engine),
        "end_reads": EndReads(engine, clock),
        "job_desk": JobDesk(TaskReads(engine), ZoneAliasStore(engine)),
        "job_details": JobDetails(job_table, JobPolicyReads(engine), audit),
        "job_list": JobListReads(engine),
        "job_reads": JobReads(engine),
        "job_table": job_table,
        "step_reads": StepReads(engine),
        "story_reads": StoryReads(engine),
        "task_reads": TaskReads(engine),
        "login_limits": LoginLimits(),
        "run_reads": WorkflowRunReads(engine),
        "workflow_reads": WorkflowReads(engine),
        **figures(engine, clock, paces),
        "house": house(engine, clock, change_feed, paces),
    }


def house(engine: Engine, clock: DatabaseClock, change_feed: ChangeFeed, paces: PaceReads) -> House:
    """Make what the overview is read by."""
    return House(
        overview=OverviewReads(engine),
        rates=RateReads(engine, clock),
        queues=QueueReads(engine, paces),
        workers=WorkerReads(engine),
        clock=clock,
        change_feed=change_feed,
    )


def people(engine: Engine) -> dict[str, object]:
    """Make what the API has of users, their keys and the workers' orders."""
    return {"users": UserStore(engine), "keys": KeyStore(engine), "fleet": FleetStore(engine)}


def figures(engine: Engine, clock: DatabaseClock, paces: PaceReads) -> dict[str, object]:
    """Make what reads queues, workers and figures; they share what they remember for a moment."""
    workers = WorkerReads(engine)
    stats, queues = StatsReads(paces), QueueReads(engine, paces)
    return {
        "stats_reads": stats,
        "queue_reads": queues,
        "worker_reads": workers,
        "summary_reads": SummaryReads(engine),
        "explanations": ExplanationReads(engine, paces, clock),
        "metrics": Metrics(stats=stats, queues=queues, workers=workers),
    }
