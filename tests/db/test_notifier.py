"""Hints travel, and a listener knows whether it hears."""

import asyncio
from datetime import UTC, datetime, timedelta

import asyncpg
from hypothesis import given
from hypothesis import strategies as st

from app.db.notifier import HintListener, HintSender
from app.db.pools import Pool
from app.domain.hints import MAX_PAYLOAD_BYTES, Hints, Ready, read_hints
from app.domain.ids import SHARDS
from tests.polling import eventually

NOW = datetime(2026, 1, 31, 12, 0, 0, 123456, UTC)
PLACES = st.builds(
    Ready,
    st.sampled_from(SHARDS),
    st.from_regex(r"[a-z0-9][a-z0-9_.-]{0,62}", fullmatch=True),
    st.integers(0, 3),
    st.integers(0, 10**9).map(lambda n: NOW + timedelta(microseconds=n)),
)


@given(st.lists(PLACES, max_size=200))
def test_hints_arrive_as_they_were_gathered_in_payloads_that_fit(places: list[Ready]) -> None:
    hints = Hints()
    hints.add(places)

    payloads = hints.take_payloads()
    heard = [place for payload in payloads for place in read_hints(payload)]

    assert all(len(payload.encode()) <= MAX_PAYLOAD_BYTES for payload in payloads)
    assert {(p.shard, p.queue, p.priority) for p in heard} == {(p.shard, p.queue, p.priority) for p in places}
    for place in heard:
        assert place.due_at == min(
            p.due_at for p in places if (p.queue, p.priority) == (place.queue, place.priority)
        )
    assert not hints


@given(st.text())
def test_a_payload_of_somebody_else_is_passed_over(payload: str) -> None:
    assert all(place.shard in SHARDS for place in read_hints(payload))


async def test_hints_wake_a_listener_and_are_gathered(pool: Pool, dsn: str) -> None:
    heard: list[list[Ready]] = []
    schedules, suspects = asyncio.Event(), asyncio.Event()
    listener = HintListener(dsn, on_ready=heard.append, on_schedules=schedules.set, on_suspects=suspects.set)
    await listener.tick()
    sender = HintSender(pool)

    for shard in SHARDS:
        sender.announce([Ready(shard, "general", 2, NOW)])
    sender.announce_schedules()
    sender.announce_suspects()
    await sender.close()

    async def all_heard() -> bool:
        told = schedules.is_set() and suspects.is_set()
        return told and {p.shard for places in heard for p in places} == set(SHARDS)

    await eventually(all_heard)
    assert len(heard) < len(SHARDS)
    await listener.close()


async def test_a_listener_notices_that_its_connection_is_gone_and_makes_another(pool: Pool, dsn: str) -> None:
    listener = HintListener(dsn, on_ready=lambda _places: None)
    await listener.tick()
    assert listener.hears
    await pool.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'onthedot listener'"
        " AND datname = current_database()"
    )

    async def hears_again() -> bool:
        try:
            await listener.tick()
        except (
            TimeoutError,
            OSError,
            asyncpg.PostgresError,
            asyncpg.InterfaceError,
            asyncpg.InternalClientError,
        ):
            return False
        return listener.hears

    await eventually(hears_again)
    await listener.close()
