"""The run_key of a step's execution: `w:RUN/STEP/ROUND/INDEX`. By it everybody knows what an execution belongs to."""

from typing import NamedTuple
from uuid import UUID


class Round(NamedTuple):
    """A round of a step of a run: a retry is another round."""

    run_id: UUID
    step: str
    number: int

    @property
    def prefix(self) -> str:
        """Return what the run_keys of its executions begin with."""
        return f"w:{self.run_id}/{self.step}/{self.number}/"


def round_of(run_key: str) -> Round:
    """Return what a step's execution belongs to. Only of executions whose trigger is `workflow`."""
    run, step, number, *_ = run_key.removeprefix("w:").split("/")
    return Round(UUID(run), step, int(number))
