"""Answers kept for a moment: how many reads they cost, and whom a failure concerns."""

import asyncio

import pytest

from app.db.reads.recent import MOST, Recent


class Reads:
    """Counts how often something is read; a read ends when it is let."""

    def __init__(self) -> None:
        self.begun = 0
        self.has_begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self, key: str) -> str:
        self.begun += 1
        number = self.begun
        self.has_begun.set()
        await self.go_on.wait()
        if self.error:
            raise self.error
        return f"{key} {number}"


@pytest.fixture
async def reads() -> Reads:
    found = Reads()
    found.go_on.set()
    return found


async def test_an_answer_is_kept_under_its_key(reads: Reads) -> None:
    recent = Recent(reads, seconds=1000)

    assert [await recent.get(key) for key in "abab"] == ["a 1", "b 2", "a 1", "b 2"]


async def test_an_answer_is_read_anew_when_its_time_is_over(reads: Reads) -> None:
    recent = Recent(reads, seconds=0)

    assert [await recent.get("a"), await recent.get("a")] == ["a 1", "a 2"]


async def test_those_who_ask_at_once_share_one_read(reads: Reads) -> None:
    reads.go_on.clear()
    recent = Recent(reads, seconds=0)
    asking = [asyncio.create_task(recent.get("a")) for _ in range(20)]
    await reads.has_begun.wait()
    reads.go_on.set()

    assert await asyncio.gather(*asking) == ["a 1"] * 20


async def test_one_who_goes_away_takes_nothing_from_the_others(reads: Reads) -> None:
    reads.go_on.clear()
    recent = Recent(reads, seconds=1000)
    first, second = (asyncio.create_task(recent.get("a")) for _ in range(2))
    await reads.has_begun.wait()
    first.cancel()
    reads.go_on.set()

    assert await second == "a 1"
    assert await recent.get("a") == "a 1"


async def test_a_failure_is_told_and_not_kept(reads: Reads) -> None:
    recent = Recent(reads, seconds=1000)
    reads.error = OSError("away")
    with pytest.raises(OSError, match="away"):
        await recent.get("a")
    reads.error = None

    assert await recent.get("a") == "a 2"


async def test_no_more_than_the_most_are_kept(reads: Reads) -> None:
    recent = Recent(reads, seconds=1000)
    for number in range(MOST + 10):
        await recent.get(str(number))

    assert await recent.get(str(MOST + 9)) == f"{MOST + 9} {MOST + 10}"
    assert await recent.get("0") == f"0 {MOST + 11}"
