"""The checker by itself: for each promise a history that breaks it, and a twin that does not."""

import msgspec
import pytest

from tests.chaos.checker import INVARIANTS, Verdict, check
from tests.chaos.history import Snapshot
from tests.chaos.stories import LEASE_SECONDS, Story
from tests.chaos.twins import BOUNDS, TWINS, Twins, taken_when_it_had_run_out


def judge(story: Story, snapshot: Snapshot | None = None) -> Verdict:
    """Judge a story."""
    return check(story.history(snapshot), BOUNDS)


@pytest.mark.parametrize("twins", TWINS, ids=lambda twins: f"{twins.invariant} {twins.bad.__name__}")
def test_a_broken_promise_is_seen_and_its_twin_is_not_blamed(twins: Twins) -> None:
    bad, good = Story(), Story()
    twins.bad(bad)
    twins.good(good)

    assert twins.invariant in judge(bad).broken
    assert judge(good).violations == []


REST = Snapshot(live=0, finished=1, leased=0, waiting_locks=0, idle_in_transaction=0)


@pytest.mark.parametrize(
    ("invariant", "change"),
    [
        ("I23", {"finished": 2}),
        ("I23", {"live": 1}),
        ("I25", {"leased": 1}),
        ("I25", {"waiting_locks": 1}),
        ("I25", {"idle_in_transaction": 1}),
        ("I25", {"damage": ("executions_p3: item order invariant violated",)}),
    ],
)
def test_what_is_left_at_the_end_counts(invariant: str, change: dict[str, object]) -> None:
    story = Story()
    story.job().run()

    assert judge(story, REST).violations == []
    assert judge(story, msgspec.structs.replace(REST, **change)).broken == {invariant}


def test_every_invariant_has_a_history_that_breaks_it() -> None:
    assert {name.split()[0] for name in INVARIANTS} == {twins.invariant for twins in TWINS} | {"I23", "I25"}


def test_what_is_lost_and_what_is_doubled_do_not_cancel_out() -> None:
    story = Story()
    story.job().claim().start()
    story.job().run().settle()
    story.job(outcome="info", committed=False)

    counts = judge(story).counts

    assert (counts.lost, counts.duplicate_completion, counts.indeterminate) == (1, 1, 1)


def test_an_explained_start_is_counted_by_its_fault() -> None:
    story = Story()
    taken_when_it_had_run_out(story)

    verdict = judge(story)

    assert (verdict.counts.duplicate_start_explained, verdict.counts.duplicate_start_unexplained) == (1, 0)
    assert verdict.explained == {"kill": 1}
    assert verdict.is_safe


def test_a_thawed_worker_that_begins_what_is_over_is_explained() -> None:
    story = Story()
    told = story.job().claim()
    story.break_("pid 1", seconds=LEASE_SECONDS, kind="freeze")
    told.reap().run(pid=2)
    start = msgspec.structs.replace(story.effects[0], pid=1, token=told.token - 2, at=story.tick())
    story.effects += [start, msgspec.structs.replace(start, phase="stopped", at=story.tick())]

    assert judge(story).violations == []
    assert judge(story).explained == {"freeze": 1}


def test_a_run_that_goes_on_beside_its_successor_is_an_overlap() -> None:
    story = Story()
    told = story.job().claim().start()
    story.break_("pid 1", seconds=LEASE_SECONDS, kind="freeze")
    second = told.reap().claim(pid=2).start()
    story.effects.append(msgspec.structs.replace(story.effects[0], phase="stopped", at=story.tick()))
    second.end().settle()

    assert judge(story).counts.overlapping_runs == 1
    assert judge(story).is_safe
