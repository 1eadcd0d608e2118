"""What became of each execution, by what was committed: W, put together by transaction and execution."""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from app.domain.statuses import FINAL, LEASED
from tests.chaos.journals import Change


class State(msgspec.Struct, frozen=True, kw_only=True):
    """An execution's row."""

    status: str
    epoch: int
    attempt: int
    most_attempts: int
    worker: str | None
    lease_ends: float | None
    due: float
    deaths: int = 0

    @property
    def is_leased(self) -> bool:
        """Tell whether a worker has it."""
        return self.status in LEASED

    @property
    def is_final(self) -> bool:
        """Tell whether it lies in the history."""
        return self.status in FINAL


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What one transaction made of an execution; `after` None: the row is gone for good."""

    transaction: int
    at: float
    before: State | None
    after: State | None
    outcome: str | None = None
    """Of the attempt that it wrote down, and under which epoch."""
    outcome_epoch: int | None = None
    token: int | None = None
    """What the handler that ended the execution, or failed, says it had."""


class Life(msgspec.Struct, kw_only=True):
    """All that was committed about an execution."""

    execution_id: str
    job_id: str
    key: str
    limits: dict[str, int]
    """Under which limits it comes, and how many each allows at once."""
    place: tuple[str, ...]
    """Job, instant and run key: unique."""
    steps: list[Step]

    @property
    def finals(self) -> list[Step]:
        """Return the steps that ended it; a right history has one."""
        return [step for step in self.steps if step.after is not None and step.after.is_final]

    @property
    def last(self) -> State | None:
        """Return what is left of it."""
        return self.steps[-1].after

    def freeing(self, epoch: int) -> Step | None:
        """Return the step that ended the lease of an epoch."""
        for step in self.steps:
            before, after = step.before, step.after
            if (
                before
                and before.is_leased
                and before.epoch == epoch
                and after
                and not _still_leased(before, after)
            ):
                return step
        return None

    def grant(self, epoch: int) -> Step | None:
        """Return the step by which a lease of this epoch began."""
        for step in self.steps:
            if step.after and step.after.is_leased and step.after.epoch == epoch:
                return step
        return None


def _still_leased(before: State, after: State) -> bool:
    return after.is_leased and after.epoch == before.epoch


def lives_of(changes: Iterable[Change]) -> dict[str, Life]:
    """Return the lives of all executions by their ids."""
    found: dict[str, Life] = {}
    together: list[Change] = []
    for change in sorted(changes, key=lambda each: each.transaction):
        if together and together[0].transaction != change.transaction:
            _apply(found, together)
            together = []
        together.append(change)
    _apply(found, together)
    return found


def _apply(found: dict[str, Life], transaction: list[Change]) -> None:
    for execution_id in dict.fromkeys(change.execution_id for change in transaction):
        mine = [change for change in transaction if change.execution_id == execution_id]
        life = found.get(execution_id)
        if life is None:
            life = found[execution_id] = _begin(mine[0])
        before = life.steps[-1].after if life.steps else None
        after, noted = before, None
        for change in mine:
            if change.table == "attempts":
                noted = change.columns
            elif change.action == "delete":
                after = None if after is None or not after.is_final else after
            else:
                after = _state(change.columns, before=before)
        life.steps.append(_step(mine, before, after, noted))


def _begin(change: Change) -> Life:
    columns = change.columns
    parameters = msgspec.json.decode(columns.get("parameters") or "{}")
    place = (columns.get("job_id") or "", columns.get("scheduled_time") or "", columns.get("run_key") or "")
    return Life(
        execution_id=change.execution_id,
        job_id=place[0],
        key=str(parameters.get("key", "")),
        limits=parameters.get("limits", {}),
        place=place,
        steps=[],
    )


def _step(
    mine: Sequence[Change], before: State | None, after: State | None, noted: dict[str, str | None] | None
) -> Step:
    wrote = [change.columns for change in mine if change.columns.get("status") is not None]
    ends_attempt = noted is not None or (after is not None and after.is_final)
    return Step(
        transaction=mine[0].transaction,
        at=mine[0].at,
        before=before,
        after=after,
        outcome=noted["outcome"] if noted else None,
        outcome_epoch=int(noted["lease_epoch"] or 0) if noted else None,
        token=_token(wrote[-1]) if wrote and ends_attempt else None,
    )


def _token(columns: dict[str, str | None]) -> int | None:
    """Return the token that a handler of ours puts into what it returns, and into what it raises."""
    if columns["status"] == "COMPLETED" and columns.get("result"):
        result = msgspec.json.decode(columns["result"] or "null")
        return result.get("token") if isinstance(result, dict) else None
    if columns["status"] in {"FAILED", "RETRYING"} and columns.get("error"):
        message = str(msgspec.json.decode(columns["error"] or "{}").get("message", ""))
        word, _, number = message.partition(" ")
        return int(number) if word == "token" and number.isdecimal() else None
    return None


def _state(columns: dict[str, str | None], *, before: State | None) -> State:
    lease_ends, due = columns.get("lease_expires_at"), columns.get("due_at")
    return State(
        status=columns["status"] or "",
        epoch=int(columns["lease_epoch"] or 0),
        attempt=int(columns["attempt_number"] or 0),
        most_attempts=int(columns["max_attempts"] or 0),
        worker=columns.get("worker_id"),
        lease_ends=seconds(lease_ends) if lease_ends else None,
        due=seconds(due) if due else before.due if before else 0.0,
        deaths=int(columns.get("worker_deaths") or 0),
    )


def seconds(timestamp: str) -> float:
    """Return a timestamp of PostgreSQL's as seconds since 1970."""
    return datetime.fromisoformat(timestamp).timestamp()
