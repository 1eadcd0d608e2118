"""What the page of a job says: its policy in words, and how its runs went in figures."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from app.db.reads.job_policy import JobPolicy, Limits
from app.db.reads.job_runs import Run
from app.db.reads.jobs import JobView, ScheduleView
from app.domain.cron import parse_all
from app.domain.errors import InvalidInput
from app.domain.retry import Backoff, RetryPolicy
from app.ui.limit_words import at_once_words, label_words, needs_words, rate_words
from app.ui.words import duration, pretty

PRIORITIES = ("critical", "high", "normal", "low")
MOST_JSON_CHARACTERS = 20_000
"""Of parameters on a page."""
_SHOWN_DELAYS = 3

_OVERLAP = {
    "allow": "runs may overlap",
    "skip": "skipped while an earlier run is under way",
    "queue": "waits until the earlier run has ended",
    "cancel_running": "stops the earlier run, then begins",
}
_MISFIRE = {"skip": "skipped", "run_once": "one run makes up for all", "run_all": "all are made up for"}
_GAP = {"run_after_gap": "run right after", "skip": "do not run"}
_FOLD = {"first": "run the first time", "second": "run the second time", "both": "run both times"}


class Rule(NamedTuple):
    """A part of a job's policy: what it concerns, and what holds."""

    name: str
    words: str
    whose: str = ""
    """Whose it is, where it is not the job's own."""


class Sample(NamedTuple):
    """How long runs took and how many began late, of so many."""

    runs: int
    p50: float | None
    """Seconds that half of the completed runs stayed below."""
    p95: float | None
    late: int


def policy_rules(job: JobView, policy: JobPolicy | None) -> list[Rule]:
    """Return what holds for a job's runs."""
    rules = [Rule("Overlap", _OVERLAP[job.overlap])]
    if job.schedule.type in {"RECURRING", "INTERVAL"}:
        rules.append(Rule("Missed runs", misfire_words(job.schedule)))
    if _has_time_of_day(job.schedule):
        words = f"times it skips {_GAP[job.schedule.gap]}, times it repeats {_FOLD[job.schedule.fold]}"
        rules.append(Rule("Clock changes", words))
    if policy is not None:
        rules += [*_settings(job, policy), *_limits(job, policy)]
    return rules


def misfire_words(schedule: ScheduleView) -> str:
    """Return what becomes of instants that nobody planned in time."""
    if schedule.misfire == "run_all":
        return _MISFIRE["run_all"]
    return f"later than {duration(schedule.misfire_grace_seconds)}: {_MISFIRE[schedule.misfire]}"


def retry_words(count: int, backoff: Backoff) -> str:
    """Return how often a run is tried again and after how long: `3 retries, after 1 s, 2 s, 4 s`."""
    if count == 0:
        return "not retried"
    delays = [
        duration(backoff.delay_after(number, jitter=0)) for number in range(1, count + 1)[:_SHOWN_DELAYS]
    ]
    if count == 1 or backoff.policy is RetryPolicy.FIXED:
        return f"{count} {'retry' if count == 1 else 'retries, each'} after {delays[0]}"
    last = duration(backoff.delay_after(count, jitter=0))
    return f"{count} retries, after {', '.join(delays)}{f' … {last}' if count > _SHOWN_DELAYS else ''}"


def sample_of(runs: Sequence[Run], *, max_delay_ms: float) -> Sample:
    """Measure runs."""
    seconds = sorted(run.seconds for run in runs if run.status == "COMPLETED" and run.seconds is not None)
    late = sum(run.lateness_ms is not None and run.lateness_ms > max_delay_ms for run in runs)
    return Sample(len(runs), _quantile(seconds, 0.5), _quantile(seconds, 0.95), late)


def shown_parameters(job: JobView) -> tuple[str, int]:
    """Return the parameters as text, bounded, and how many characters that leaves out."""
    text = pretty(job.parameters)
    return text[:MOST_JSON_CHARACTERS], max(0, len(text) - MOST_JSON_CHARACTERS)


def _settings(job: JobView, policy: JobPolicy) -> list[Rule]:
    retries = retry_words(policy.max_retries, policy.backoff)
    priority = f"{policy.priority} {PRIORITIES[policy.priority]}"
    return [
        Rule("When it fails", retries, _whose(job.max_retries)),
        Rule("Time-out", f"after {duration(policy.timeout_seconds)}", _whose(job.timeout_seconds)),
        *_deadline(job),
        *_unique(job),
        Rule("Queue", policy.queue, _whose(job.queue)),
        Rule("Priority", priority, _whose(job.priority)),
    ]


def _limits(job: JobView, policy: JobPolicy) -> Iterator[Rule]:
    """Yield what limits its runs, and the runs that they share limits with."""
    if policy.concurrency_key is not None:
        words = f"{policy.concurrency_key}: {at_once_words(policy.concurrency_limit or 1)}"
        yield Rule("Concurrency key", words, _whose(job.concurrency_key))
    of_each_key = ", of each key" if policy.concurrency_key and policy.of_task.rate else ""
    for name, limits, more in (
        ("Runs of its task", policy.of_task, of_each_key),
        ("Runs in its queue", policy.of_queue, ""),
        ("Runs of its owner", policy.of_user, ""),
    ):
        if words := "; ".join(_limit_words(limits)):
            yield Rule(name, words + more)
    if needs := needs_words(policy.cpu_cores, policy.memory_mb):
        yield Rule("Takes", needs, "from the task")
    if policy.labels:
        yield Rule("Runs where", ", ".join(label_words(policy.labels)), "from the task")


def _limit_words(limits: Limits) -> Iterator[str]:
    if limits.most is not None:
        yield at_once_words(limits.most)
    if limits.per_hour is not None:
        yield f"{limits.per_hour:,} an hour"
    if limits.rate is not None:
        yield rate_words(limits.rate)


def _deadline(job: JobView) -> list[Rule]:
    seconds = job.expires_after_seconds
    return [] if seconds is None else [Rule("Begins", f"within {duration(seconds)}, or never", "")]


def _unique(job: JobView) -> list[Rule]:
    if job.unique_key is None:
        return []
    seconds = job.unique_for_seconds
    held = "while it has not ended" if seconds is None else f"for {duration(seconds)} from its creation"
    return [Rule("Unique key", f"{job.unique_key}, held {held}", "")]


def _whose(own: object) -> str:
    return "from the task" if own is None else ""


def _has_time_of_day(schedule: ScheduleView) -> bool:
    """Tell whether the clock may jump over its times, or show them twice."""
    if schedule.expression is None or schedule.timezone == "UTC":
        return False
    try:
        return not all(one.follows_elapsed_time for one in parse_all(schedule.expression))
    except InvalidInput:
        return False


def _quantile(ascending: Sequence[float], share: float) -> float | None:
    """Return the value that this share of the values does not exceed; between two of them in proportion."""
    if not ascending:
        return None
    place = share * (len(ascending) - 1)
    low = int(place)
    high = min(low + 1, len(ascending) - 1)
    return ascending[low] + (ascending[high] - ascending[low]) * (place - low)
