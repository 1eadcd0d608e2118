"""Right histories of any shape are accepted; one event dropped, doubled, moved or rewritten, and it is named."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chaos.bounds import Bounds
from tests.chaos.checker import check
from tests.chaos.stories import LEASE_SECONDS, Story, Told

BOUNDS = Bounds(lease_seconds=LEASE_SECONDS)
LITTLE = 0.1


def fail_once(told: Told) -> None:
    """Let an attempt fail."""
    told.claim().start().end("failed").retry()


def die_once(told: Told) -> None:
    """Let its worker be killed while it runs."""
    told.claim(pid=3).start()
    told.story.break_("pid 3")
    told.reap()


def freeze_once(told: Told) -> None:
    """Let its worker be away for longer than the lease; it says later that it was told to stop."""
    told.claim(pid=4).start()
    start = told.story.effects[-1]
    told.story.break_("pid 4", seconds=LEASE_SECONDS, kind="freeze")
    told.reap()
    told.story.effects.append(msgspec.structs.replace(start, phase="stopped", at=told.story.tick()))


def give_back(told: Told) -> None:
    """Let it be claimed and given back."""
    told.claim().release()


def renew_twice(told: Told) -> None:
    """Let it run for longer, and then fail."""
    told.claim().start().renew().renew().end("failed").retry()


TURNS = (fail_once, die_once, freeze_once, give_back, renew_twice)
courses = st.lists(st.lists(st.sampled_from(TURNS), max_size=3), min_size=1, max_size=4)


def tell(course: list[list[Callable[[Told], None]]]) -> Story:
    """Tell a right story: jobs take these turns, one after the other, and are completed at last."""
    story = Story()
    for turns in course:
        told = story.job()
        for turn in turns:
            turn(told)
        told.run(pid=2)
    return story


@given(courses)
def test_a_right_history_is_accepted(course: list[list[Callable[[Told], None]]]) -> None:
    verdict = check(tell(course).history(), BOUNDS)

    again = sum(turn in {die_once, freeze_once} for turns in course for turn in turns)
    assert verdict.violations == []
    assert verdict.counts.duplicate_start_explained == again
    assert verdict.counts.completed == verdict.counts.accepted == len(course)


def transactions(story: Story, told: Told) -> list[int]:
    """Return the transactions about an execution, in their order."""
    mine = [change.transaction for change in story.changes if change.execution_id == told.execution_id]
    return sorted(set(mine))


def drop_its_end(story: Story, told: Told) -> None:
    """Lose the commit that completed it."""
    last = transactions(story, told)[-1]
    story.changes = [change for change in story.changes if change.transaction != last]


def double_its_end(story: Story, told: Told) -> None:
    """Commit its completion again."""
    last = transactions(story, told)[-1]
    again = [change for change in story.changes if change.transaction == last]
    number = story.commit()
    story.changes += [msgspec.structs.replace(change, transaction=number) for change in again]


def drop_its_claim(story: Story, told: Told) -> None:
    """Lose the commit of the first lease under which it began."""
    began = next(effect for effect in story.effects if effect.execution_id == told.execution_id)
    epoch = str(began.token & 0xFFFF)
    grants = [
        change.transaction
        for change in story.changes
        if change.execution_id == told.execution_id
        and change.columns.get("lease_epoch") == epoch
        and change.columns.get("status") == "RUNNING"
    ]
    story.changes = [change for change in story.changes if change.transaction not in grants]


def start_early(story: Story, told: Told) -> None:
    """Let it begin before it was created."""
    _move(story, told, "start", to=story.asked[0].at - LITTLE)


def end_late(story: Story, told: Told) -> None:
    """Let its run end after its completion was committed."""
    _move(story, told, "ok", to=story.at + LITTLE)


def drop_its_run(story: Story, told: Told) -> None:
    """Let it complete though its handler never came to its end."""
    story.effects = [e for e in story.effects if e.execution_id != told.execution_id or e.phase != "ok"]


def start_again(story: Story, told: Told) -> None:
    """Let another process begin it under the same token."""
    started = [e for e in story.effects if e.execution_id == told.execution_id and e.phase == "start"][-1]
    story.effects.append(msgspec.structs.replace(started, pid=99, at=started.at + LITTLE))


def complete_by_an_old_token(story: Story, told: Told) -> None:
    """Let the completion say that another token ran."""
    _rewrite(story, told, result=f'{{"token": {told.token - 1}}}')


def forget_who_asked(story: Story, told: Told) -> None:
    """Let nobody have asked for it."""
    story.asked = [step for step in story.asked if told.key not in step.keys]


def sink_its_epoch(story: Story, told: Told) -> None:
    """Let its end carry an epoch from before."""
    _rewrite(story, told, lease_epoch=str(told.epoch - 1))


BENT = {
    drop_its_end: "I1",
    double_its_end: "I4",
    drop_its_claim: "I6 of runs",
    start_early: "I8",
    end_late: "I3",
    drop_its_run: "I3",
    start_again: "I6 of runs",
    complete_by_an_old_token: "I5",
    forget_who_asked: "I2",
    sink_its_epoch: "I6",
}


@pytest.mark.parametrize("bend", BENT, ids=lambda bend: bend.__name__)
@given(course=courses, which=st.integers(min_value=0))
def test_a_bent_history_is_refused(
    bend: Callable[[Story, Told], None], course: list[list[Callable[[Told], None]]], which: int
) -> None:
    story = tell(course)
    bend(story, story.jobs[which % len(story.jobs)])

    assert BENT[bend].split()[0] in check(story.history(), BOUNDS).broken


def without_faults(story: Story) -> None:
    """Forget that anything was broken."""
    story.faults = []


@given(courses)
def test_without_its_faults_every_extra_start_is_unexplained(
    course: list[list[Callable[[Told], None]]],
) -> None:
    explained, bare = tell(course), tell(course)
    without_faults(bare)

    again = check(explained.history(), BOUNDS).counts.duplicate_start_explained
    counts = check(bare.history(), BOUNDS).counts
    assert (counts.duplicate_start_explained, counts.duplicate_start_unexplained) == (0, again)


@given(course=courses, which=st.integers(min_value=0), is_there=st.booleans())
def test_what_nobody_was_told_may_be_there_or_not(
    course: list[list[Callable[[Told], None]]], which: int, *, is_there: bool
) -> None:
    story = tell(course)
    told = story.jobs[which % len(story.jobs)]
    story.asked = [
        msgspec.structs.replace(step, phase="info") if told.key in step.keys and step.phase == "ok" else step
        for step in story.asked
    ]
    if not is_there:
        story.jobs.remove(told)
        story.changes = [change for change in story.changes if change.execution_id != told.execution_id]
        story.effects = [effect for effect in story.effects if effect.execution_id != told.execution_id]

    verdict = check(story.history(), BOUNDS)

    assert verdict.violations == []
    assert verdict.counts.indeterminate == 1


@given(courses)
def test_more_faults_than_needed_blame_nobody(course: list[list[Callable[[Told], None]]]) -> None:
    story = tell(course)
    story.break_("database", seconds=1.0, kind="outage")

    assert check(story.history(), BOUNDS).violations == []


def _move(story: Story, told: Told, phase: str, *, to: float) -> None:
    """Move the last event of a phase."""
    index = max(
        i for i, e in enumerate(story.effects) if e.execution_id == told.execution_id and e.phase == phase
    )
    story.effects[index] = msgspec.structs.replace(story.effects[index], at=to)


def _rewrite(story: Story, told: Told, **columns: str) -> None:
    """Rewrite the row of its end."""
    for change in story.changes:
        if change.execution_id == told.execution_id and change.table == "execution_history":
            change.columns.update(columns)
