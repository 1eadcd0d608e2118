"""Made-up histories: what an engine that keeps its promises would leave in the journals, told step by step."""

from datetime import UTC, datetime
from typing import Self

import msgspec

from tests.chaos.history import EPOCH_BITS, History, Snapshot
from tests.chaos.journals import Asked, Change, Clock, Effect, Fault

BEGINNING = 1_700_000_000.0
"""The server's time at moment 0."""
LEASE_SECONDS = 3.0
TICK_SECONDS = 0.01
TIMELINE = 1
LAPSED = '{"message": "The worker stopped renewing"}'


class Story:
    """The journals of a house in which one thing happens after the other. Events are public: tests bend them."""

    def __init__(self) -> None:
        self.at = 100.0
        self.asked: list[Asked] = []
        self.effects: list[Effect] = []
        self.changes: list[Change] = []
        self.faults: list[Fault] = []
        self.jobs: list[Told] = []
        self.left_holders = 0
        """What still counts against limits at the end."""
        self._transactions = 0

    def job(
        self, *, outcome: str = "ok", committed: bool = True, delay: float = 0.0, limit: int | None = None
    ) -> "Told":
        """Create a job that runs once; `delay` is how far ahead its instant lies, `limit` how many run at once."""
        told = Told(
            self, len(self.jobs), due=self.at + delay, limits={} if limit is None else {"user": limit}
        )
        self.jobs.append(told)
        operation = len(self.jobs)
        self.ask(operation, "create", "invoke", keys=(told.key,))
        if committed:
            told.write("insert", status="PENDING")
        self.ask(operation, "create", outcome, keys=(told.key,), status=201 if outcome == "ok" else None)
        return told

    def ask(self, operation: int, action: str, phase: str, **more: object) -> None:
        """Note a producer's step."""
        self.asked.append(Asked(operation=operation, action=action, phase=phase, at=self.tick(), **more))  # type: ignore[arg-type]

    def commit(self) -> int:
        """Begin another transaction; return its number."""
        self._transactions += 1
        return self._transactions

    def tick(self, seconds: float = TICK_SECONDS) -> float:
        """Let time pass; return the moment."""
        self.at += seconds
        return self.at

    def break_(self, target: str, *, seconds: float = 0.0, kind: str = "kill") -> None:
        """Break something for a while."""
        began = self.tick()
        self.faults.append(Fault(kind=kind, target=target, began=began, ended=self.tick(seconds), seed=0))

    def history(self, snapshot: Snapshot | None = None) -> History:
        """Put the journals together."""
        if snapshot is None:
            snapshot = self.rest()
        return History(
            asked=self.asked,
            effects=self.effects,
            changes=self.changes,
            faults=self.faults,
            clocks=[Clock(at=0.0, wall=BEGINNING)],
            snapshot=snapshot,
        )

    def rest(self) -> Snapshot:
        """Return what the tables hold, by what was told."""
        there = [told for told in self.jobs if told.exists]
        finished = sum(told.finished for told in there)
        leased = sum(told.status in {"SCHEDULED", "RUNNING"} for told in there)
        return Snapshot(
            live=len(there) - finished,
            finished=finished,
            leased=leased,
            waiting_locks=0,
            idle_in_transaction=0,
            holders=self.left_holders,
        )


class Told:
    """One execution of a story."""

    def __init__(self, story: Story, number: int, *, due: float, limits: dict[str, int]) -> None:
        self.story, self.limits = story, limits
        self.key = f"key-{number}"
        self.job_id, self.execution_id = f"job-{number}", f"execution-{number}"
        self.due, self.epoch, self.attempt, self.most_attempts, self.deaths = due, 0, 0, 4, 0
        self.worker, self.pid, self.lease_ends = "", 0, 0.0
        self.status, self.exists, self.finished = "", False, False

    @property
    def token(self) -> int:
        """Return the fencing token of its lease."""
        return (TIMELINE << EPOCH_BITS) + self.epoch

    def claim(self, *, pid: int = 1) -> Self:
        """Let a worker take it."""
        self.story.at = max(self.story.at, self.due)
        self.epoch, self.attempt, self.pid, self.worker = (
            self.epoch + 1,
            self.attempt + 1,
            pid,
            f"worker-{pid}",
        )
        self.lease_ends = self.story.at + LEASE_SECONDS
        return self.write("update", status="RUNNING")

    def lease_ahead(self, *, pid: int = 1) -> Self:
        """Let a worker lease it ahead of its instant."""
        self.epoch, self.pid, self.worker = self.epoch + 1, pid, f"worker-{pid}"
        self.lease_ends = self.due + LEASE_SECONDS
        return self.write("update", status="SCHEDULED")

    def arm(self) -> Self:
        """Begin the attempt of what was leased ahead."""
        self.attempt += 1
        self.write("update", status="RUNNING")
        self.story.at = max(self.story.at, self.due)
        return self

    def renew(self) -> Self:
        """Prolong its lease."""
        self.lease_ends = self.story.at + LEASE_SECONDS
        return self.write("update", status="RUNNING")

    def start(self) -> Self:
        """Let its handler begin."""
        return self._do("start")

    def end(self, phase: str = "ok") -> Self:
        """Let its handler end."""
        return self._do(phase)

    def settle(self, status: str = "COMPLETED", *, token: int | None = None) -> Self:
        """Let its worker record its end."""
        said = self.token if token is None else token
        self.exists, self.finished = True, True
        error = f'{{"message": "token {said}"}}' if status == "FAILED" else None
        result = f'{{"token": {said}}}' if status == "COMPLETED" else None
        return self._write_together(
            ("executions", "delete", {}), self._end(status, result=result, error=error)
        )

    def retry(self, *, token: int | None = None) -> Self:
        """Let its worker record a failed attempt."""
        said = self.epoch if token is None else token
        noted = {"lease_epoch": str(said), "outcome": "failed", "attempt_number": str(self.attempt)}
        self.epoch += 1
        error = f'{{"message": "token {(TIMELINE << EPOCH_BITS) + said}"}}'
        return self._free("RETRYING", noted, error=error)

    def reap(self, *, early: float = 0.0) -> Self:
        """Let the reaper take it from a worker that is gone."""
        self.story.at = max(self.story.at, self.lease_ends - early)
        noted = {"lease_epoch": str(self.epoch), "outcome": "lost", "attempt_number": str(self.attempt)}
        self._die()
        return self._free("RETRYING", noted, error=LAPSED)

    def reap_poison(self) -> Self:
        """Let the reaper fail it: too many workers are gone."""
        self.story.at = max(self.story.at, self.lease_ends)
        self._die()
        self.finished = True
        return self._write_together(
            ("executions", "delete", {}), self._end("FAILED", error=LAPSED, worker_id=self.worker)
        )

    def _die(self) -> None:
        self.epoch, self.deaths, self.most_attempts = self.epoch + 1, self.deaths + 1, self.most_attempts + 1

    def release(self) -> Self:
        """Let its worker give it back: it had not begun."""
        self.epoch, self.attempt = self.epoch + 1, self.attempt - 1
        return self._free("RETRYING" if self.attempt else "PENDING", None)

    def cancel(self) -> Self:
        """Let a person cancel it before it begins."""
        operation = 10_000 + len(self.story.asked)
        self.story.ask(operation, "cancel", "invoke", execution_id=self.execution_id)
        self.epoch, self.finished = self.epoch + 1, True
        self._write_together(("executions", "delete", {}), self._end("CANCELLED"))
        self.story.ask(operation, "cancel", "ok", execution_id=self.execution_id, status=200)
        return self

    def run(self, *, pid: int = 1) -> Self:
        """Let it be claimed, run and be settled."""
        return self.claim(pid=pid).start().end().settle()

    def write(self, action: str, *, status: str) -> Self:
        """Commit its row as it is now."""
        self.exists = True
        return self._write_together(("executions", action, self._row(status)))

    def _free(self, status: str, noted: dict[str, str | None] | None, *, error: str | None = None) -> Self:
        self.worker, self.due = "", max(self.due, self.story.at)
        rows = [("executions", "update", self._row(status, error=error))]
        return self._write_together(*rows, *([("attempts", "insert", noted)] if noted else []))

    def _end(self, status: str, **more: str | None) -> tuple[str, str, dict[str, str | None]]:
        return ("execution_history", "insert", self._row(status, **more))

    def _row(self, status: str, **more: str | None) -> dict[str, str | None]:
        self.status = status
        leased = status in {"SCHEDULED", "RUNNING"}
        return {
            "status": status,
            "job_id": self.job_id,
            "scheduled_time": f"{self.job_id} on time",
            "run_key": "",
            "parameters": msgspec.json.encode({"key": self.key, "limits": self.limits}).decode(),
            "lease_epoch": str(self.epoch),
            "attempt_number": str(self.attempt),
            "max_attempts": str(self.most_attempts),
            "worker_id": self.worker if leased else None,
            "lease_expires_at": timestamp(self.lease_ends) if leased else None,
            "due_at": timestamp(self.due),
            "worker_deaths": str(self.deaths),
        } | more

    def _write_together(self, *rows: tuple[str, str, dict[str, str | None]]) -> Self:
        transaction, at = self.story.commit(), BEGINNING + self.story.tick()
        for table, action, columns in rows:
            self.story.changes.append(
                Change(
                    transaction=transaction, at=at, table=table, action=action,
                    execution_id=self.execution_id, columns=columns,
                )
            )  # fmt: skip
        return self

    def _do(self, phase: str) -> Self:
        at = self.story.tick()
        self.story.effects.append(
            Effect(
                phase=phase, execution_id=self.execution_id, job_id=self.job_id, key=self.key, attempt=self.attempt,
                token=self.token, pid=self.pid, at=at, wall=BEGINNING + at,
            )
        )  # fmt: skip
        return self


def timestamp(at: float) -> str:
    """Return a moment as PostgreSQL writes it."""
    return datetime.fromtimestamp(BEGINNING + at, UTC).isoformat(" ")
