"""One sentence on how the house is doing, and how bad that is."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from app.db.reads.overview import LATE_COUNTED, Failing, FirstSteps, Late
from app.db.reads.workers import StateCount, WorkerState
from app.ui.words import capped, counted

Level = Literal["good", "warn", "bad"]


class Verdict(NamedTuple):
    """The sentence; `aside` says what works."""

    level: Level
    text: str
    aside: str


def judge(
    *, failing: Failing, late: Late, workers: Mapping[WorkerState, StateCount], steps: FirstSteps
) -> Verdict:
    """Say what is wrong, the worst first; nothing that is well is called wrong."""
    level, text = _judge(failing, late, workers, steps)
    return Verdict(level, text, _aside(workers))


def _judge(
    failing: Failing, late: Late, workers: Mapping[WorkerState, StateCount], steps: FirstSteps
) -> tuple[Level, str]:
    able = workers[WorkerState.LIVE].workers
    if not able and not steps.job:
        return "warn", "No worker is connected yet"
    wrong = _wrong(failing, late)
    if not able:
        return "bad", "; ".join(["No worker is alive: nothing runs", *wrong])
    if wrong:
        return "bad" if failing.total else "warn", ", ".join(wrong)
    lost = workers[WorkerState.LOST].workers
    if lost:
        return "warn", f"Nothing fails and nothing is late, but {counted(lost, 'worker')} got lost"
    return "good", "All is well: nothing fails, nothing is late"


def _wrong(failing: Failing, late: Late) -> list[str]:
    found = []
    if failing.total:
        found.append(f"{counted(failing.total, 'job', more=failing.more)} failing")
    if late.total:
        found.append(f"{capped(late.total, LATE_COUNTED)} late")
    return found


def _aside(workers: Mapping[WorkerState, StateCount]) -> str:
    live = f"{counted(workers[WorkerState.LIVE].workers, 'worker')} live"
    others = (workers[state] for state in (WorkerState.DRAINING, WorkerState.STALE, WorkerState.LOST))
    return ", ".join([live, *(f"{one.workers} {one.state}" for one in others if one.workers)])
