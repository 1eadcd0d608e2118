"""What workers, the reaper and people may do to executions, in plain Python: the promise that the SQL is held to."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from uuid import UUID

from app.domain.poison import POISON_AT, is_suspect
from app.domain.statuses import LEASED, READY, Status

Token = tuple[UUID, int]
"""An execution and the epoch under which somebody has, or had, its lease."""
KEY_LIMIT = 2
"""How many of one concurrency_key may run at once."""


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
    limited: bool = False
    user: str = "ada"
    key: str | None = None
    overlap: str = "allow"
    job: UUID | None = None

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
    quota: int | None = None
    """How much of eve's may run at once; nothing limits ada."""
    holders: dict[tuple[str, UUID], int] = field(default_factory=dict)
    """What counts against each limit, and the epoch under which it does."""

    def ready(self, *, due: bool, alone: bool = False, limited: bool = False) -> set[UUID]:
        """Return what may be claimed, or leased ahead, by any worker or by one that runs nothing else.

        Of what is limited it is all that may be claimed where there is room.
        """
        if self.is_queue_paused:
            return set()
        suited = {
            key: row
            for key, row in self.live.items()
            if is_suspect(row.deaths) is alone and row.limited is limited
        }
        return {key for key, row in suited.items() if row.is_ready and row.is_due is due}

    def grant(self, keys: Iterable[UUID], worker: UUID, status: Status) -> None:
        """Begin leases."""
        for key in keys:
            row = self.live[key]
            row.status, row.worker, row.epoch, row.has_lapsed = status, worker, row.epoch + 1, False
            row.attempt += status is Status.RUNNING
            self.granted.add((key, row.epoch))
            self.holders |= {(limit, key): row.epoch for limit, _ in self.limits_of(row)}

    def limits_of(self, row: Row) -> Iterator[tuple[str, int]]:
        """Yield what limits an execution, and how many that lets in."""
        if row.limited and row.user == "eve" and self.quota is not None:
            yield "user:eve", self.quota
        if row.key is not None:
            yield f"key:{row.key}", KEY_LIMIT
        if row.overlap != "allow":
            yield f"job:{row.job}", 1

    def is_limited_anew(self, row: Row) -> bool:
        """Tell whether something limits an execution that is made, or planned anew, now."""
        by_quota = row.user == "eve" and self.quota is not None
        return by_quota or row.key is not None or row.overlap != "allow"

    def counts(self) -> Counter[str]:
        """Return how many count against each limit."""
        return Counter(limit for limit, _ in self.holders)

    def is_kept_out(self, row: Row) -> bool:
        """Tell whether a limit of an execution is full."""
        counts = self.counts()
        return any(counts[limit] >= most for limit, most in self.limits_of(row))

    def set_quota(self, most: int | None) -> None:
        """Limit what runs of eve's, or no more: what waits comes under it, what runs counts."""
        is_new, self.quota = self.quota is None and most is not None, most
        for key, row in self.live.items():
            if not is_new or row.user != "eve":
                continue
            if row.status is Status.SCHEDULED:
                row.free()
            elif row.status is Status.RUNNING:
                self.holders["user:eve", key] = row.epoch
            row.limited = True

    def free(self, token: Token) -> None:
        """Let a lease that is over count no more; an execution that is to be tried again is under way, still."""
        row = self.live.get(token[0])
        is_under_way = row is not None and row.status is Status.RETRYING
        for limit, key in list(self.holders):
            is_its = (key, self.holders[limit, key]) == token
            if is_its and not (is_under_way and limit.startswith("job:")):
                del self.holders[limit, key]

    def sweep(self) -> None:
        """Let all leases that are over count no more."""
        for (_, key), epoch in list(self.holders.items()):
            if self.running_by((key, epoch)) is None:
                row = self.live.get(key)
                if row is None or row.status is not Status.RETRYING:
                    self._drop(key, epoch)
                else:
                    self.free((key, epoch))

    def _drop(self, key: UUID, epoch: int) -> None:
        self.holders = {held: of for held, of in self.holders.items() if (held[1], of) != (key, epoch)}

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
