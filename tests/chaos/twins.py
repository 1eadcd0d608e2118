"""For each promise a story that breaks it, and one that is as like to it as can be and does not."""

from collections.abc import Callable
from typing import NamedTuple

from tests.chaos.bounds import Bounds
from tests.chaos.stories import LEASE_SECONDS, Story, Told

BOUNDS = Bounds(lease_seconds=LEASE_SECONDS)


class Twins(NamedTuple):
    """An invariant, a story that breaks it, and one that is as like to it as can be and does not."""

    invariant: str
    bad: Callable[[Story], object]
    good: Callable[[Story], object]


def accepted_but_running(story: Story) -> None:
    story.job().claim().start()


def ran_and_ended(story: Story) -> None:
    story.job().run()


def ran_without_being_created(story: Story) -> None:
    story.job(committed=False, outcome="info").start()


def created_though_nobody_was_told(story: Story) -> None:
    story.job(outcome="info").run()


def refused_but_created(story: Story) -> None:
    story.job(outcome="fail").run()


def refused_and_not_created(story: Story) -> None:
    story.job(outcome="fail", committed=False)


def completed_before_it_ended(story: Story) -> None:
    story.job().claim().start().settle().end()


def completed_by_a_run_that_failed(story: Story) -> None:
    story.job().claim().start().end("failed").settle()


def ended_twice(story: Story) -> None:
    story.job().run().settle()


def settled_under_a_stale_token(story: Story) -> None:
    told = story.job().claim().start()
    stale = told.token
    story.break_("pid 1", seconds=LEASE_SECONDS)
    told.reap().claim(pid=2).start().end().settle(token=stale)


def settled_under_the_newest_token(story: Story) -> None:
    told = story.job().claim().start()
    story.break_("pid 1", seconds=LEASE_SECONDS)
    told.reap().claim(pid=2).start().end().settle()


def failed_under_a_stale_epoch(story: Story) -> None:
    told = story.job().claim().start()
    story.break_("pid 1", seconds=LEASE_SECONDS)
    told.reap().claim(pid=2).start().end("failed").retry(token=1).run(pid=2)


def failed_and_ran_again(story: Story) -> None:
    story.job().claim().start().end("failed").retry().run()


def epoch_sank(story: Story) -> None:
    told = story.job().claim().release()
    told.epoch = 0
    told.run()


def given_back_and_claimed(story: Story) -> None:
    story.job().claim().release().run()


def began_without_a_lease(story: Story) -> None:
    told = story.job()
    told.epoch = 1
    told.start()
    told.epoch = 0
    told.run()


def began_twice_under_one_lease(story: Story) -> None:
    story.job().claim().start().start().end().end().settle()


def taken_before_it_ran_out(story: Story) -> None:
    told = story.job().claim().start()
    story.break_("pid 1")
    told.reap(early=0.5).run(pid=2)


def taken_when_it_had_run_out(story: Story) -> None:
    told = story.job().claim().start()
    story.break_("pid 1")
    told.reap().run(pid=2)


def passed_from_hand_to_hand(story: Story) -> None:
    told = story.job().claim()
    told.worker = "worker-2"
    told.renew().start().end().settle()


def renewed_and_kept(story: Story) -> None:
    story.job().claim().start().renew().renew().end().settle()


def began_again_for_no_reason(story: Story) -> None:
    story.job().claim().start().reap().run(pid=2)


def began_again_though_another_was_killed(story: Story) -> None:
    told = story.job().claim().start()
    story.break_("pid 7")
    told.reap().run(pid=2)


def began_early(story: Story) -> None:
    told = story.job(delay=2.0).lease_ahead()
    told.attempt += 1
    told.write("update", status="RUNNING").start().end().settle()


def began_on_the_dot(story: Story) -> None:
    story.job(delay=2.0).lease_ahead().arm().start().end().settle()


def began_late(story: Story) -> None:
    told = story.job()
    story.tick(BOUNDS.punctual_seconds + 1)
    told.run()


def began_late_in_an_outage(story: Story) -> None:
    told = story.job()
    story.break_("database", seconds=BOUNDS.punctual_seconds + 1, kind="outage")
    told.run()


def began_again_much_later(story: Story) -> None:
    told = story.job().claim().start()
    story.break_("pid 1")
    told.reap()
    story.tick(BOUNDS.restart_seconds)
    told.run(pid=2)


def one_instant_twice(story: Story) -> None:
    first, second = story.job(), story.job()
    second.job_id = first.job_id
    for change in story.changes[1:2]:
        change.columns.update(story.changes[0].columns)
    story.asked = [each for each in story.asked if "key-1" not in each.keys]
    first.run()
    second.key = first.key
    second.run()


def two_instants(story: Story) -> None:
    story.job().run()
    story.job().run()


def attempts_beyond_the_limit(story: Story) -> None:
    told = story.job()
    told.most_attempts = 1
    told.claim().start().end("failed").retry().run()


def attempt_skipped(story: Story) -> None:
    told = story.job()
    told.attempt = 1
    told.run()


def died_at_the_cost_of_an_attempt(story: Story) -> None:
    told = story.job().claim().start()
    story.break_("pid 1")
    told.most_attempts -= 1
    told.reap().run(pid=2)


def failed_at_the_first_death(story: Story) -> None:
    story.job().claim().start().reap_poison()


def died_four_times(story: Story) -> None:
    told = story.job()
    for pid in (1, 2, 3):
        told.claim(pid=pid).start()
        story.break_(f"pid {pid}")
        told.reap()
    told.claim(pid=4).start().reap_poison()


def died_five_times(story: Story) -> None:
    told = story.job()
    for pid in (1, 2, 3, 4):
        told.claim(pid=pid).start()
        story.break_(f"pid {pid}")
        told.reap()
    told.claim(pid=5).start().reap_poison()


def suspect_among_others(story: Story) -> None:
    told, other = suspect(story), story.job()
    other.claim(pid=3)
    told.claim(pid=3).start().end().settle()
    other.start().end().settle()


def suspect_after_another(story: Story) -> None:
    told, other = suspect(story), story.job()
    other.run(pid=3)
    told.run(pid=3)


def suspect(story: Story) -> Told:
    """Let two workers die of an execution."""
    told = story.job()
    for pid in (1, 2):
        told.claim(pid=pid).start()
        story.break_(f"pid {pid}")
        told.reap()
    return told


def two_under_a_limit_of_one(story: Story) -> None:
    first, second = story.job(limit=1), story.job(limit=1)
    first.claim(pid=1).start()
    second.claim(pid=2).start().end().settle()
    first.end().settle()


def one_after_the_other_under_a_limit_of_one(story: Story) -> None:
    first, second = story.job(limit=1), story.job(limit=1)
    first.claim(pid=1).start().end().settle()
    second.claim(pid=2).start().end().settle()


def began_beside_what_a_killed_worker_ran(story: Story) -> None:
    first, second = story.job(limit=1), story.job(limit=1)
    first.claim(pid=1).start()
    story.break_("pid 1")
    second.run(pid=2)
    first.reap().run(pid=2)


def began_when_a_killed_worker_was_known_to_be_gone(story: Story) -> None:
    first, second = story.job(limit=1), story.job(limit=1)
    first.claim(pid=1).start()
    story.break_("pid 1")
    first.reap()
    second.run(pid=2)
    first.run(pid=2)


def place_stays_taken(story: Story) -> None:
    story.job(limit=1).run()
    story.left_holders = 1


def cancelled_and_began(story: Story) -> None:
    told = story.job(delay=1.0).lease_ahead().cancel()
    told.epoch -= 1
    story.tick(2.0)
    told.start()


def cancelled_and_quiet(story: Story) -> None:
    story.job(delay=1.0).lease_ahead().cancel()


def cancelled_and_completed(story: Story) -> None:
    told = story.job().claim().start().end()
    story.ask(99, "cancel", "invoke", execution_id=told.execution_id)
    story.ask(99, "cancel", "ok", execution_id=told.execution_id, status=200)
    told.settle()


def asked_to_stop_and_completed(story: Story) -> None:
    told = story.job().claim().start().end()
    story.ask(99, "cancel", "invoke", execution_id=told.execution_id)
    story.ask(99, "cancel", "ok", execution_id=told.execution_id, status=202)
    told.settle()


def one_key_two_jobs(story: Story) -> None:
    first, second = story.job(), story.job()
    for change in story.changes:
        change.columns["parameters"] = '{"key": "key-0"}'
    story.asked = [each for each in story.asked if "key-1" not in each.keys]
    second.key = first.key
    first.run()
    second.run()


def came_back_from_its_end(story: Story) -> None:
    told = story.job().run()
    told.finished = False
    told.write("insert", status="PENDING")
    told.run()


def went_a_way_there_is_not(story: Story) -> None:
    story.job().settle("FAILED")


def gone_without_a_trace(story: Story) -> None:
    told = story.job(outcome="info").claim()
    told.exists = False
    told._write_together(("executions", "delete", {}))


def taken_back_by_an_edit(story: Story) -> None:
    told = story.job(outcome="info")
    told.exists = False
    told._write_together(("executions", "delete", {}))


def accepted_and_nowhere(story: Story) -> None:
    story.job(committed=False)


def doubtful_and_nowhere(story: Story) -> None:
    story.job(committed=False, outcome="info")


TWINS = [
    Twins("I1", accepted_but_running, ran_and_ended),
    Twins("I17", two_under_a_limit_of_one, one_after_the_other_under_a_limit_of_one),
    Twins("I17", began_beside_what_a_killed_worker_ran, began_when_a_killed_worker_was_known_to_be_gone),
    Twins("I17", place_stays_taken, ran_and_ended),
    Twins("I2", ran_without_being_created, created_though_nobody_was_told),
    Twins("I2", refused_but_created, refused_and_not_created),
    Twins("I3", completed_before_it_ended, ran_and_ended),
    Twins("I3", completed_by_a_run_that_failed, ran_and_ended),
    Twins("I4", ended_twice, ran_and_ended),
    Twins("I5", settled_under_a_stale_token, settled_under_the_newest_token),
    Twins("I5", failed_under_a_stale_epoch, failed_and_ran_again),
    Twins("I6", epoch_sank, given_back_and_claimed),
    Twins("I6", began_without_a_lease, ran_and_ended),
    Twins("I6", began_twice_under_one_lease, ran_and_ended),
    Twins("I7", taken_before_it_ran_out, taken_when_it_had_run_out),
    Twins("I7", passed_from_hand_to_hand, renewed_and_kept),
    Twins("I7", began_again_for_no_reason, taken_when_it_had_run_out),
    Twins("I7", began_again_though_another_was_killed, taken_when_it_had_run_out),
    Twins("I8", began_early, began_on_the_dot),
    Twins("I9", began_late, began_late_in_an_outage),
    Twins("I10", began_again_much_later, taken_when_it_had_run_out),
    Twins("I11", one_instant_twice, two_instants),
    Twins("I14", attempts_beyond_the_limit, failed_and_ran_again),
    Twins("I14", attempt_skipped, ran_and_ended),
    Twins("I14", died_at_the_cost_of_an_attempt, taken_when_it_had_run_out),
    Twins("I14", failed_at_the_first_death, died_four_times),
    Twins("I14", died_five_times, died_four_times),
    Twins("I15", cancelled_and_began, cancelled_and_quiet),
    Twins("I15", cancelled_and_completed, asked_to_stop_and_completed),
    Twins("I16", one_key_two_jobs, two_instants),
    Twins("I22", came_back_from_its_end, ran_and_ended),
    Twins("I22", went_a_way_there_is_not, ran_and_ended),
    Twins("I22", gone_without_a_trace, taken_back_by_an_edit),
    Twins("I28", suspect_among_others, suspect_after_another),
    Twins("I24", accepted_and_nowhere, doubtful_and_nowhere),
]
