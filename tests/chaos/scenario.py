"""What a scenario is, and how its run is judged."""

from collections.abc import Callable, Iterator

import msgspec

from tests.chaos.bounds import Bounds
from tests.chaos.checker import Verdict, check
from tests.chaos.figures import Answers, Return, answers, most, returns
from tests.chaos.history import History
from tests.chaos.journals import Asked, read
from tests.chaos.runs import restarts
from tests.chaos.scene import Scene, Setup

LONGEST_ANSWER_SECONDS = 10.0
SHOWN = 8


class NotRun(Exception):
    """This machine cannot do it; the message says what is missing."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """A judged run."""

    verdict: Verdict
    answers: Answers
    returns: list[Return]
    longest_restart: float | None
    """Seconds from the stroke to the next start of what was running."""
    came_to_rest: bool
    bounds: Bounds
    notes: list[str]
    missing: tuple[str, ...]
    """What was to be broken and never came by."""
    log: str


Judge = Callable[[Result], Iterator[str]]


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table."""

    name: str
    bar: str
    full: int
    """How often something is broken in the full run."""
    sample: int
    setup: Setup
    act: Callable[[Scene], None]
    judge: Judge
    must_break: str = ""
    """A negative control: the invariant that has to be broken, or the run proves nothing."""
    once_a_stage: bool = False
    """Nothing is left to break it on: each time is a row by itself, on a stage of its own."""


def judged(scene: Scene, *, came_to_rest: bool) -> Result:
    """Judge what lies in a scene's folder."""
    history = History.load(scene.folder)
    bounds = Bounds(lease_seconds=scene.setup.lease_seconds)
    return Result(
        verdict=check(history, bounds),
        answers=answers(read(scene.folder / "asked.jsonl", Asked)),
        returns=returns(history),
        longest_restart=most([after for _, _, after in restarts(history)]),
        came_to_rest=came_to_rest,
        bounds=bounds,
        notes=scene.notes,
        missing=scene.missing,
        log=(scene.folder / "serve.log").read_text(encoding="utf-8"),
    )


def failures(scenario: Scenario, result: Result) -> list[str]:
    """Return why a run does not pass: what must hold in each, and what this row promises."""
    if scenario.must_break:
        broken = scenario.must_break in result.verdict.broken
        return [] if broken else [f"{scenario.must_break} held: this way of breaking breaks nothing"]
    return [*_in_each(result), *scenario.judge(result)]


def _in_each(result: Result) -> Iterator[str]:
    verdict = result.verdict
    hard = [violation for violation in verdict.violations if violation.invariant not in {"I9", "I10"}]
    for violation in hard[:SHOWN]:
        yield f"{violation.invariant}: {violation.what}"
    if len(hard) > SHOWN:
        yield f"and {len(hard) - SHOWN} more"
    if not result.came_to_rest:
        yield "it did not come to rest"
    if verdict.counts.started == 0:
        yield "nothing ran at all"
    if result.answers.broken:
        yield f"the API answered 500 {result.answers.broken} times"
    if result.answers.unavailable_without_retry_after:
        yield f"{result.answers.unavailable_without_retry_after} times 503 without Retry-After"
    if result.answers.slowest_seconds > LONGEST_ANSWER_SECONDS:
        yield f"an answer took {result.answers.slowest_seconds:.1f} s"


def measured(result: Result) -> str:
    """Return the figures of a run in one line."""
    counts, said = result.verdict.counts, result.answers
    parts = [
        f"{counts.accepted} accepted, {counts.started} started, {counts.completed} completed",
        f"lost {counts.lost}",
        f"doubled starts {counts.duplicate_start_explained} explained + {counts.duplicate_start_unexplained} not",
        f"overlapping {counts.overlapping_runs}",
        f"doubled ends {counts.duplicate_completion}",
        f"stale accepted {counts.stale_accepted}",
        f"early {counts.early}, late {counts.late}",
        f"in doubt {counts.indeterminate}",
        f"answers {said.total} (500: {said.broken}, 503: {said.unavailable}, none: {said.none}, "
        f"slowest {said.slowest_seconds:.2f} s)",
    ]
    for name, value in (
        ("restarted after at most", result.longest_restart),
        ("first start after", most([each.first_start for each in result.returns])),
        ("90 % of the rate after", most([each.full_rate for each in result.returns])),
    ):
        parts += [f"{name} {value:.2f} s"] if value is not None else []
    return "; ".join([*parts, *result.notes])
