"""Low-water marks: claims begin where work is, and pass over none."""

from datetime import datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.db.pools import Pool
from app.db.stores.executions import ExecutionStore
from app.domain.hints import Ready
from app.domain.ids import SHARDS
from app.domain.snapshots import Snapshot
from app.worker.marks import START, TRAIL, LowWaterMarks
from tests.polling import eventually

SHARD = SHARDS[0]


class Table:
    """A table as transactions write it and looks see it, in seconds: a model of what PostgreSQL does."""

    def __init__(self) -> None:
        self.now = 0.0
        self.next = 1
        self.open: dict[int, list[float]] = {}
        """The due times that each open transaction has written, by its number."""
        self.ready: list[float] = []

    def write(self, waited: float, ahead: float) -> None:
        """Write a row in a transaction that began `waited` ago and had not written before."""
        self.open[self.next] = [self.now - waited + ahead]
        self.next += 1

    def write_more(self, which: int, ahead: float) -> None:
        """Write another row in an open transaction."""
        if self.open:
            list(self.open.values())[which % len(self.open)].append(self.now + ahead)

    def commit(self, which: int) -> None:
        """Commit an open transaction: its rows can be seen from now on."""
        if self.open:
            self.ready += self.open.pop(list(self.open)[which % len(self.open)])

    def claim(self, which: int) -> None:
        """Claim a ready row."""
        if self.ready:
            self.ready.pop(which % len(self.ready))

    def look(self, marks: LowWaterMarks) -> None:
        """Look as a worker does."""
        snapshot = Snapshot(at(self.now), min(self.open, default=self.next), self.next)
        begin = marks.to_look_from()[SHARD]
        seen = [due for due in self.ready if at(due) >= begin]
        marks.note(snapshot, [Ready(SHARD, "general", 2, at(min(seen)))] if seen else [])


def at(seconds: float) -> datetime:
    """Return an instant."""
    return START + timedelta(days=1, seconds=seconds)


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.floats(0, TRAIL.total_seconds()), st.floats(0, 60)),
        st.tuples(st.just("write_more"), st.integers(0, 5), st.floats(0, 60)),
        st.tuples(st.just("commit"), st.integers(0, 5)),
        st.tuples(st.just("claim"), st.integers(0, 5)),
        st.tuples(st.just("look"), st.floats(0, 40)),
    ),
    max_size=60,
)


@given(EVENTS)
def test_nothing_ready_and_nothing_that_will_be_lies_before_its_mark(events: list[tuple[Any, ...]]) -> None:
    table, marks = Table(), LowWaterMarks(whole_look_every_seconds=1e9)
    for event, *arguments in events:
        if event == "look":
            table.now += arguments[0]
            table.look(marks)
        else:
            getattr(table, event)(*arguments)
        mark = marks.of(Ready(SHARD, "general", 2, at(0)))
        everything = table.ready + [due for rows in table.open.values() for due in rows]
        assert all(at(due) >= mark for due in everything)


def test_marks_follow_the_time_where_nothing_waits() -> None:
    marks, place = LowWaterMarks(), Ready(SHARD, "general", 2, at(0))
    for second in range(20):
        marks.note(Snapshot(at(second), second + 1, second + 1), [])

    assert marks.of(place) == at(18) - TRAIL


def test_a_look_now_and_then_begins_at_the_start() -> None:
    marks = LowWaterMarks(whole_look_every_seconds=0)
    for second in range(20):
        marks.note(Snapshot(at(second), second + 1, second + 1), [])

    assert set(marks.to_look_from().values()) == {START}


async def test_only_transactions_that_write_hold_a_snapshot_up(pool: Pool) -> None:
    store = ExecutionStore(pool)
    async with pool.acquire() as reader, reader.transaction(isolation="repeatable_read"):
        await reader.fetch("SELECT * FROM onthedot.tasks")
        async with pool.acquire() as writer, writer.transaction():
            number = int(await writer.fetchval("SELECT pg_current_xact_id()::text"))
            during = await store.snapshot()

        # A server's other databases count, too: one of their transactions may go on for a moment.
        async def passed() -> bool:
            return (await store.snapshot()).oldest > number

        await eventually(passed)

    assert during.oldest <= number < during.next
