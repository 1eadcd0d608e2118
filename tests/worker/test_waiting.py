"""In which order a worker claims, and starts what it has claimed."""

from datetime import timedelta

from app.domain.aging import ONE_IN
from app.domain.hints import Ready
from app.domain.ids import SHARDS
from app.worker.claim_order import ClaimOrder, Turn
from app.worker.waiting import WaitingClaims
from tests.worker.claims import NOW, claim


def waiting() -> WaitingClaims:
    """Return what holds none yet."""
    return WaitingClaims(lambda: NOW)


def anybody(_queue: str) -> bool:
    """Every queue may start something."""
    return True


def place(priority: int, *, since_seconds: float, shard: int = SHARDS[0]) -> Ready:
    """Return a place whose work has been due for so long."""
    return Ready(shard, "general", priority, NOW - timedelta(seconds=since_seconds))


def test_the_most_urgent_starts_first_whoever_came_first() -> None:
    claims = waiting()
    bulk, later, critical = claim("bulk", 3), claim("bulk", 3), claim("critical", 0)
    for each in (bulk, later, critical):
        claims.add(each)

    assert [claims.next(anybody) for _ in range(4)] == [critical, bulk, later, None]
    assert not claims


def test_a_reserved_slot_is_for_its_queue_alone() -> None:
    claims = waiting()
    bulk, critical = claim("bulk", 0), claim("critical", 3)
    claims.add(bulk)

    assert claims.next(lambda queue: queue == "critical") is None
    claims.add(critical)
    assert claims.next(lambda queue: queue == "critical") == critical
    assert list(claims) == [bulk]


def test_those_that_start_before_a_new_one_are_counted() -> None:
    claims = waiting()
    for each in (claim("bulk", 3), claim("general", 2), claim("critical", 0)):
        claims.add(each)

    assert [claims.ahead_of(priority) for priority in range(4)] == [1, 1, 2, 3]
    assert claims.ahead_of(3, queue="bulk") == 1
    assert claims.ahead_of(2, queue="bulk") == 0


def test_what_is_lost_or_cancelled_starts_no_more() -> None:
    claims = waiting()
    lost, cancelled, kept = claim(), claim(), claim()
    for each in (lost, cancelled, kept):
        claims.add(each)

    claims.remove(lost.lease)
    assert claims.remove_all_of(cancelled.execution_id) == [cancelled]

    assert claims.take_all() == [kept]
    assert len(claims) == 0


def test_what_has_waited_for_long_starts_now_and_then() -> None:
    claims = waiting()
    for _ in range(100):
        claims.add(claim("general", 2))
        claims.add(claim("bulk", 3, since_seconds=8 * 3600))

    started = [claims.next(anybody) for _ in range(10 * (ONE_IN - 1))]
    low = [index for index, each in enumerate(started) if each and each.queue == "bulk"]

    assert low == list(range(ONE_IN - 1, len(started), ONE_IN))


def test_fresh_work_that_is_less_urgent_waits() -> None:
    claims = waiting()
    for _ in range(50):
        claims.add(claim("general", 2))
        claims.add(claim("bulk", 3, since_seconds=1))

    assert {each.queue for _ in range(50) if (each := claims.next(anybody))} == {"general"}


def test_a_backlog_in_one_shard_does_not_stand_before_the_others() -> None:
    order, waiting = ClaimOrder(first_shard=3), [place(2, since_seconds=1, shard=shard) for shard in SHARDS]
    first = []
    for _ in range(len(SHARDS) + 1):
        turn = order.turns(waiting, NOW)[0]
        order.note(turn, 100)
        first.append(turn.place.shard)

    assert first == [*SHARDS[3:], *SHARDS[:3], SHARDS[3]]


def test_a_worker_claims_by_urgency_and_begins_at_shards_of_its_own() -> None:
    order = ClaimOrder(first_shard=3)
    near, far, low = (
        place(1, since_seconds=1, shard=SHARDS[3]),
        place(1, since_seconds=2, shard=SHARDS[2]),
        place(2, since_seconds=3),
    )

    assert order.turns([low, far, near], NOW) == [Turn(near), Turn(far), Turn(low)]


def test_a_backlog_of_hours_gets_its_share_of_the_claims_and_no_more() -> None:
    order, urgent, old = (
        ClaimOrder(first_shard=0),
        place(2, since_seconds=1),
        place(3, since_seconds=8 * 3600),
    )
    claimed = {urgent.place: 0, old.place: 0}

    for _ in range(1000):  # a slot becomes free at a time; there is more of both than can be claimed
        turn = order.turns([urgent, old], NOW)[0]
        order.note(turn, 1)
        claimed[turn.place.place] += 1

    assert claimed == {urgent.place: 900, old.place: 100}


def test_a_large_claim_is_followed_by_as_large_a_share() -> None:
    order, urgent, old = ClaimOrder(first_shard=0), place(2, since_seconds=1), place(3, since_seconds=60)
    first, *_ = order.turns([urgent, old], NOW)
    order.note(first, 500)

    assert order.turns([urgent, old], NOW)[0] == Turn(old, at_most=500 // (ONE_IN - 1))


def test_what_waited_is_owed_nothing_when_it_is_gone() -> None:
    order, urgent, old = ClaimOrder(first_shard=0), place(2, since_seconds=1), place(3, since_seconds=60)
    order.note(order.turns([urgent, old], NOW)[0], 500)

    assert order.turns([urgent], NOW) == [Turn(urgent)]
    assert order.turns([urgent, old], NOW) == [Turn(urgent), Turn(old)]
