"""Which executions may begin beside what counts against their limits."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from hypothesis import given
from hypothesis import strategies as st

from app.domain.admission import Admission, Candidate, Host, LimitState, Overlap, admit, limits_of

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
HOST = Host("ant", 4.0, 4096)
JOB = UUID(int=7)
FREE = LimitState(0)


def candidate(**given: Any) -> Candidate:
    """Return an execution of ada's, of the task `report`, that nothing limits."""
    fields: dict[str, Any] = dict.fromkeys(Candidate.__struct_fields__)
    fields |= {
        "execution_id": uuid4(),
        "job_id": uuid4(),
        "user_id": "ada",
        "task_id": "report",
        "due_at": NOW,
        "trigger": "schedule",
        "attempt_number": 0,
        "overlap": "allow",
        "limited": True,
    }
    return Candidate(**fields | given)


def admitted(candidates: list[Candidate], states: dict[str, LimitState], *, most: int = 100) -> Admission:
    """Return what becomes of candidates; what no state is given of is free."""
    pairs = [(each, list(limits_of(each, "general", HOST))) for each in candidates]
    free = {limit.key: FREE for _, limits in pairs for limit in limits}
    return admit(pairs, free | states, HOST, most=most)


def ids(candidates: list[Candidate]) -> list[UUID]:
    """Return their ids."""
    return [each.execution_id for each in candidates]


def begun(admission: Admission) -> list[UUID]:
    """Return the ids of what begins."""
    return [each.execution_id for each in admission.admitted]


def test_what_nothing_limits_begins_in_its_order_up_to_the_most() -> None:
    some = [candidate(limited=False) for _ in range(5)]

    assert begun(admitted(some, {}, most=3)) == ids(some[:3])


def test_a_quota_lets_in_what_it_leaves_and_names_what_counts() -> None:
    some = [candidate(user_max=5) for _ in range(4)]
    admission = admitted(some, {"user:ada": LimitState(3)})

    assert begun(admission) == ids(some[:2])
    assert [limit.key for limit in admission.admitted[0].limits] == ["user:ada"]


def test_a_limit_that_nobody_could_lock_keeps_its_executions_waiting() -> None:
    free, locked = candidate(), candidate(user_id="bob", user_max=5)
    pairs = [(each, list(limits_of(each, "general", HOST))) for each in (locked, free)]

    assert begun(admit(pairs, {}, HOST, most=10)) == [free.execution_id]


def test_what_one_limit_keeps_out_takes_nothing_of_another() -> None:
    full = candidate(user_max=9, queue_max=2, concurrency_key="t:a")
    rest = [candidate(user_max=9, queue_max=2, concurrency_key=f"t:{i}") for i in range(3)]
    admission = admitted([full, *rest], {"key:t:a": LimitState(1)})

    assert begun(admission) == ids(rest[:2])


def test_a_key_lets_one_in_unless_it_says_more() -> None:
    assert len(admitted([candidate(concurrency_key="a") for _ in range(3)], {}).admitted) == 1
    some = [candidate(concurrency_key="a", concurrency_limit=2) for _ in range(3)]
    assert len(admitted(some, {}).admitted) == 2


def test_cores_and_memory_of_a_host_are_never_given_twice() -> None:
    states = {"host:ant": LimitState(2, cpu_cores=1.5, memory_mb=1024)}
    some = [
        candidate(cpu_cores=1.0, memory_mb=1500),
        candidate(cpu_cores=2.5),
        candidate(cpu_cores=1.0, memory_mb=1600),
    ]
    admission = admitted(some, states)

    assert begun(admission) == ids([some[0]])  # then 2.5 of 4 cores and 2,524 of 4,096 MiB are taken


def test_a_bucket_fills_at_its_rate_and_tells_when_it_has_a_token_again() -> None:
    state = LimitState(0, tokens=0.5, seconds=1.0)
    some = [candidate(queue_rate=2.0, queue_burst=10) for _ in range(4)]
    admission = admitted(some, {"queue:general": state})

    assert begun(admission) == ids(some[:2])  # 0.5 and two of that second
    assert admission.tokens == {"queue:general": 0.5}
    assert admission.wait_seconds == 0.25
    assert all(not limit.counts for each in admission.admitted for limit in each.limits)


def test_a_bucket_that_was_never_used_is_full() -> None:
    assert len(admitted([candidate(user_rate=2.0, user_burst=3) for _ in range(5)], {}).admitted) == 3
    assert len(admitted([candidate(user_rate=2.5) for _ in range(5)], {}).admitted) == 2
    assert len(admitted([candidate(user_rate=0.1) for _ in range(5)], {}).admitted) == 1


def test_a_clock_that_went_back_takes_no_token_away() -> None:
    assert (
        len(
            admitted(
                [candidate(user_rate=1.0)], {"user:ada": LimitState(0, tokens=1.0, seconds=-5.0)}
            ).admitted
        )
        == 1
    )


def test_an_execution_is_skipped_while_another_one_of_its_job_runs() -> None:
    states = {f"job:{JOB}": LimitState(1, holder=uuid4())}
    new = candidate(job_id=JOB, overlap=Overlap.SKIP)
    by_hand = candidate(job_id=JOB, overlap=Overlap.SKIP, trigger="manual")
    again = candidate(job_id=JOB, overlap=Overlap.SKIP, attempt_number=1)
    admission = admitted([new, by_hand, again], states)

    assert (admission.skipped, begun(admission)) == ([new.execution_id], [])


def test_of_two_that_are_due_at_once_the_second_is_skipped() -> None:
    some = [candidate(job_id=JOB, overlap=Overlap.SKIP) for _ in range(2)]
    admission = admitted(some, {})

    assert (begun(admission), admission.skipped) == (ids(some[:1]), ids(some[1:]))


def test_what_is_to_be_tried_again_is_not_in_its_own_way() -> None:
    again = candidate(job_id=JOB, overlap=Overlap.SKIP, attempt_number=1)
    states = {f"job:{JOB}": LimitState(1, holder=again.execution_id)}

    assert begun(admitted([again], states)) == [again.execution_id]


def test_a_lease_of_its_own_that_is_over_keeps_nobody_out() -> None:
    some = [candidate(concurrency_key="k", concurrency_limit=2, cpu_cores=2.0) for _ in range(3)]
    for again in some[:2]:
        states = {
            "key:k": LimitState(1, holder=again.execution_id),
            "host:ant": LimitState(1, cpu_cores=2.0, holder=again.execution_id),
        }
        assert begun(admitted(some, states)) == ids(some[:2])


def test_one_that_queues_waits() -> None:
    some = [candidate(job_id=JOB, overlap=Overlap.QUEUE) for _ in range(2)]
    admission = admitted(some, {})

    assert (begun(admission), admission.skipped, admission.overlapped) == (ids(some[:1]), [], [])


def test_the_newest_has_what_runs_stopped_and_then_makes_older_ones_pointless() -> None:
    older, newer = (
        candidate(job_id=JOB, overlap=Overlap.CANCEL_RUNNING, due_at=NOW + timedelta(minutes=i))
        for i in range(2)
    )
    blocked = admitted([older, newer], {f"job:{JOB}": LimitState(1, holder=uuid4())})
    free = admitted([older, newer], {})

    assert (begun(blocked), blocked.overlapped, blocked.skipped) == ([], [f"job:{JOB}"], [])
    assert (begun(free), free.overlapped, free.skipped) == (ids([newer]), [], ids([older]))


small = st.none() | st.integers(1, 3)
candidates = st.builds(
    candidate,
    user_id=st.sampled_from("ab"),
    task_id=st.sampled_from("xy"),
    job_id=st.sampled_from([JOB, UUID(int=8)]),
    user_max=small,
    queue_max=small,
    task_max=small,
    task_rate=st.none() | st.just(1.0),
    task_burst=small,
    concurrency_key=st.none() | st.sampled_from("kl"),
    concurrency_limit=small,
    cpu_cores=st.sampled_from([0.0, 0.5, 2.0]),
    memory_mb=st.sampled_from([0, 512, 4096]),
    overlap=st.sampled_from(list(Overlap)),
    limited=st.booleans(),
)


@given(st.lists(candidates, max_size=12), st.integers(0, 3), st.integers(0, 12))
def test_no_limit_is_ever_passed(some: list[Candidate], held: int, most: int) -> None:
    keys = {limit.key for each in some for limit in limits_of(each, "general", HOST)}
    states = {key: LimitState(held, 0.5 * held, 512 * held, tokens=1.5, seconds=0.0) for key in keys}
    admission = admitted(some, states, most=most)
    by_id = {each.execution_id: each for each in some}
    count, cores, memory = (
        dict.fromkeys(keys, held),
        dict.fromkeys(keys, 0.5 * held),
        dict.fromkeys(keys, 512 * held),
    )
    starts = dict.fromkeys(keys, 0)

    assert len(admission.admitted) <= most
    assert not {*begun(admission)} & {*admission.skipped}
    for each in admission.admitted:
        assert each.limits == list(limits_of(by_id[each.execution_id], "general", HOST))
        for limit in each.limits:
            count[limit.key] += 1
            cores[limit.key] += limit.cpu_cores
            memory[limit.key] += limit.memory_mb
            starts[limit.key] += limit.rate_per_second is not None
            assert limit.most is None or count[limit.key] <= limit.most
            assert cores[limit.key] <= HOST.cpu_cores or not limit.cpu_cores
            assert memory[limit.key] <= HOST.memory_mb or not limit.memory_mb
            assert starts[limit.key] <= 1  # of one token and a half
