"""What workers, the reaper and people may do to executions, in plain Python: the promise that the SQL is held to."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from app.domain.poison import POISON_AT, is_suspect
from app.domain.statuses import LEASED, READY, Status

Token = tuple[UUID, int]
"""An execution and the epoch under which somebody has, or had, its lease."""


@dataclass
class Row:
    """A live execution."""

    status: Status = Status.PENDING
    epoch: int = 0
    attempt: int = 0
    most_attempts: int = 4
    worker: UUID | None = None
    is_due: bool = True
    has_lapsed: bool = False
    held: bool = False
    is_asked_to_stop: bool = False
    deaths: int = 0

    @property
    def is_leased(self) -> bool:
        """Tell whether a worker has it."""
        return self.status in LEASED

    @property
    def is_ready(self) -> bool:
        """Tell whether it may be claimed, now or at its instant."""
        return self.status in READY and not self.held and not self.is_asked_to_stop

    @property
    def is_waiting(self) -> bool:
        """Tell whether nobody has begun it."""
        return self.attempt == 0 and self.status in {Status.PENDING, Status.SCHEDULED}

    def free(self, status: Status | None = None) -> None:
        """End its lease; without a status it waits for its first attempt, or for the next one."""
        self.status = status or (Status.RETRYING if self.attempt else Status.PENDING)
        self.epoch, self.worker, self.has_lapsed = self.epoch + 1, None, False


@dataclass
class Model:
    """All executions, and what is known of those that have ended."""

    live: dict[UUID, Row] = field(default_factory=dict)
    ended: dict[UUID, tuple[str, int]] = field(default_factory=dict)
    """Status and epoch."""
    attempts: set[tuple[UUID, int, int, str]] = field(default_factory=set)
    """Execution, number, epoch, outcome."""
    granted: set[Token] = field(default_factory=set)
    is_queue_paused: bool = False

    def ready(self, *, due: bool, alone: bool = False) -> set[UUID]:
        """Return what may be claimed, or leased ahead, by any worker or by one that runs nothing else."""
        if self.is_queue_paused:
            return set()
        suited = {key: row for key, row in self.live.items() if is_suspect(row.deaths) is alone}
        return {key for key, row in suited.items() if row.is_ready and row.is_due is due}

    def grant(self, keys: Iterable[UUID], worker: UUID, status: Status) -> None:
        """Begin leases."""
        for key in keys:
            row = self.live[key]
            row.status, row.worker, row.epoch, row.has_lapsed = status, worker, row.epoch + 1, False
            row.attempt += status is Status.RUNNING
            self.granted.add((key, row.epoch))

    def held_by(self, token: Token) -> Row | None:
        """Return the row if this is its newest lease, and not over."""
        row = self.live.get(token[0])
        return row if row and row.is_leased and row.epoch == token[1] else None

    def running_by(self, token: Token) -> Row | None:
        """Return the row if it runs under this lease."""
        row = self.held_by(token)
        return row if row and row.status is Status.RUNNING else None

    def end(self, key: UUID, status: Status, *, epochs: int = 0) -> None:
        """Move it to the history."""
        row = self.live.pop(key)
        self.ended[key] = (status, row.epoch + epochs)

    def fail(self, key: UUID, outcome: str) -> None:
        """End an attempt, and let it wait for the next one."""
        row = self.live[key]
        self.attempts.add((key, row.attempt, row.epoch, outcome))
        row.free(Status.RETRYING)

    def lose(self, key: UUID) -> None:
        """Count the death of its worker: it is none of its own attempts, but the last one is the end."""
        row = self.live[key]
        row.deaths, row.most_attempts = row.deaths + 1, row.most_attempts + 1
        if row.deaths < POISON_AT:
            self.fail(key, "lost")
        else:
            self.end(key, Status.FAILED, epochs=1)

    def reap(self) -> None:
        """Free what has lapsed, and end what was asked to stop and nobody runs."""
        for key, row in list(self.live.items()):
            over = row.is_leased and row.has_lapsed
            if over and row.status is Status.SCHEDULED:
                row.free()
            elif row.is_asked_to_stop and (over or not row.is_leased):
                self.end(key, Status.CANCELLED, epochs=1)
            elif over:
                self.lose(key)
