"""A run as the checker sees it: four journals, put together by execution."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Self

import msgspec

from tests.chaos.journals import Asked, Change, Clock, Effect, Fault, read, write
from tests.chaos.lives import Life, lives_of

EPOCH_BITS = 40
"""A fencing token is `(timeline << 40) + lease_epoch`."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What the database holds when all is over."""

    live: int
    finished: int
    leased: int
    waiting_locks: int
    idle_in_transaction: int
    holders: int = 0
    """What counts against limits."""
    damage: tuple[str, ...] = ()


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A handler's run, as it says itself; `end` None: it never came to one."""

    start: Effect
    end: Effect | None = None

    @property
    def epoch(self) -> int:
        """Return the lease's epoch."""
        return epoch_of(self.start.token)


class Operation(msgspec.Struct, kw_only=True):
    """What a producer wanted, and what it knows about it."""

    action: str
    keys: tuple[str, ...]
    execution_id: str | None
    asked_at: float
    answered_at: float | None = None
    outcome: str = "info"
    """`ok`, `fail` (refused, surely not done) or `info`."""
    status: int | None = None


class History:
    """The journals of a run, by execution and operation."""

    def __init__(
        self,
        *,
        asked: Iterable[Asked],
        effects: Iterable[Effect],
        changes: Iterable[Change],
        faults: Iterable[Fault],
        clocks: Sequence[Clock],
        snapshot: Snapshot | None = None,
    ) -> None:
        self.operations = _operations(asked)
        self.runs = _runs(effects)
        self.lives = lives_of(changes)
        self.faults = list(faults)
        self.snapshot = snapshot
        self._offset = median(clock.wall - clock.at for clock in clocks) if clocks else 0.0

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read the journals that `save_changes`, producers, handlers and nemesis have left in a folder."""
        snapshot = folder / "snapshot.json"
        return cls(
            asked=read(folder / "asked.jsonl", Asked),
            effects=read(folder / "effects", Effect),
            changes=read(folder / "changes.jsonl", Change),
            faults=read(folder / "faults.jsonl", Fault),
            clocks=read(folder / "clocks.jsonl", Clock),
            snapshot=msgspec.json.decode(snapshot.read_bytes(), type=Snapshot) if snapshot.exists() else None,
        )

    @property
    def accepted(self) -> set[str]:
        """Return the keys of jobs whose creation was confirmed."""
        return self._keys("ok")

    @property
    def unknown(self) -> set[str]:
        """Return the keys of jobs of which their producer does not know whether they were created."""
        return self._keys("info")

    def by_key(self) -> dict[str, list[Life]]:
        """Return the lives of each key."""
        found = defaultdict(list)
        for life in self.lives.values():
            found[life.key].append(life)
        return found

    def wall(self, at: float) -> float:
        """Return the server's time of a moment."""
        return at + self._offset

    def moment(self, wall: float) -> float:
        """Return the moment of a server's time."""
        return wall - self._offset

    def _keys(self, outcome: str) -> set[str]:
        made = [
            each for each in self.operations.values() if each.action == "create" and each.outcome == outcome
        ]
        return {key for each in made for key in each.keys}


def save_changes(folder: Path, changes: Iterable[Change], snapshot: Snapshot) -> None:
    """Write down what the database says when all is over."""
    write(folder / "changes.jsonl", changes)
    (folder / "snapshot.json").write_bytes(msgspec.json.encode(snapshot))


def epoch_of(token: int) -> int:
    """Return the lease's epoch in a fencing token."""
    return token & ((1 << EPOCH_BITS) - 1)


def _operations(asked: Iterable[Asked]) -> dict[int, Operation]:
    """Put steps together. What was confirmed is done, whatever was said before; what was refused is surely not done
    only if its producer was never in doubt before."""
    found: dict[int, Operation] = {}
    for step in asked:
        operation = found.get(step.operation)
        if operation is None:
            operation = found[step.operation] = Operation(
                action=step.action, keys=step.keys, execution_id=step.execution_id, asked_at=step.at
            )
        if step.phase != "invoke" and operation.outcome != "ok":
            in_doubt = operation.answered_at is not None
            operation.outcome = "info" if in_doubt and step.phase != "ok" else step.phase
            operation.status, operation.answered_at = step.status, step.at
    return found


def _runs(effects: Iterable[Effect]) -> dict[str, list[Run]]:
    begun: dict[tuple[str, int, int, float], Run] = {}
    open_runs: dict[tuple[str, int, int], list[tuple[str, int, int, float]]] = defaultdict(list)
    for effect in sorted(effects, key=lambda each: (each.at, each.phase != "start")):
        name = (effect.execution_id, effect.token, effect.pid)
        if effect.phase == "start":
            begun[(*name, effect.at)] = Run(start=effect)
            open_runs[name].append((*name, effect.at))
        elif open_runs[name]:
            which = open_runs[name].pop(0)
            begun[which] = Run(start=begun[which].start, end=effect)
    found: dict[str, list[Run]] = defaultdict(list)
    for run in begun.values():
        found[run.start.execution_id].append(run)
    # By lease: a worker that was frozen may begin what another one has long completed.
    return {key: sorted(runs, key=lambda run: (run.start.token, run.start.at)) for key, runs in found.items()}
