"""How often somebody may try to log in."""

import httpx
import pytest

from app.db.stores.access import AccessStore
from app.ui.login_limits import (
    ADDRESSES_KEPT,
    FAILURES_OF_ALL,
    FAILURES_OF_AN_ADDRESS,
    SECONDS_TO_FORGET_ONE,
    LoginLimits,
)
from app.ui.sessions import COOKIE_NAME
from tests.ui.conftest import ADA_KEY, Site


class Clock:
    """A clock that stands until it is moved."""

    now = 1000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """Return a clock of the test's own."""
    return Clock()


@pytest.fixture
def limits(clock: Clock) -> LoginLimits:
    """Return limits by that clock."""
    return LoginLimits(clock)


def fail(limits: LoginLimits, address: str | None, times: int = 1) -> None:
    """Fail to log in."""
    for _ in range(times):
        limits.note_failure(address)


def test_an_address_may_fail_some_times_and_then_waits(limits: LoginLimits, clock: Clock) -> None:
    fail(limits, "10.0.0.1", FAILURES_OF_AN_ADDRESS - 1)
    assert limits.seconds_to_wait("10.0.0.1") == 0

    fail(limits, "10.0.0.1")
    assert limits.seconds_to_wait("10.0.0.1") == SECONDS_TO_FORGET_ONE
    assert limits.seconds_to_wait("10.0.0.2") == 0

    clock.now += SECONDS_TO_FORGET_ONE
    assert limits.seconds_to_wait("10.0.0.1") == 0


def test_many_addresses_together_are_limited_too(limits: LoginLimits, clock: Clock) -> None:
    for i in range(FAILURES_OF_ALL):
        fail(limits, f"10.0.{i // 250}.{i % 250}")

    assert limits.seconds_to_wait("192.0.2.1") == 1
    clock.now += 1
    assert limits.seconds_to_wait("192.0.2.1") == 0


def test_a_network_of_ipv6_counts_as_one_address(limits: LoginLimits) -> None:
    for i in range(FAILURES_OF_AN_ADDRESS):
        fail(limits, f"2001:db8::{i:x}")

    assert limits.seconds_to_wait("2001:db8::ffff") > 0
    assert limits.seconds_to_wait("2001:db8:0:1::1") == 0


@pytest.mark.parametrize("address", [None, "", "a unix socket"])
def test_what_has_no_address_is_limited_as_one(limits: LoginLimits, address: str | None) -> None:
    fail(limits, address, FAILURES_OF_AN_ADDRESS)

    assert limits.seconds_to_wait(address) > 0


def test_what_is_kept_stays_bounded(limits: LoginLimits, clock: Clock) -> None:
    for i in range(2 * ADDRESSES_KEPT):
        clock.now += 0.01
        fail(limits, f"{i >> 16 & 255}.{i >> 8 & 255}.{i & 255}.1")

    assert len(limits._failures) <= ADDRESSES_KEPT + 1


@pytest.mark.asyncio(loop_scope="module")
async def test_after_wrong_keys_even_the_right_one_has_to_wait(visitor: httpx.AsyncClient) -> None:
    wrong = [await visitor.post("/login", data={"key": f"wrong {i}"}) for i in range(FAILURES_OF_AN_ADDRESS)]
    right = await visitor.post("/login", data={"key": ADA_KEY, "next": "/jobs"})

    assert {answer.status_code for answer in wrong} == {401}
    assert (right.status_code, right.headers["retry-after"]) == (429, "6")
    assert COOKIE_NAME not in right.cookies
    assert "Too many logins have failed. Try again in 6 s." in right.text


@pytest.mark.asyncio(loop_scope="module")
async def test_links_are_limited_as_keys_are(site: Site, visitor: httpx.AsyncClient) -> None:
    await AccessStore(site.engine).add_login_token("a token", user_id="ada")
    for i in range(FAILURES_OF_AN_ADDRESS):
        await visitor.get(f"/login?token=wrong{i}")
    limited = await visitor.get("/login?token=a+token")
    site.login_limits._failures.clear()
    later = await visitor.get("/login?token=a+token")

    assert (limited.status_code, later.status_code) == (429, 303)  # the link was not used up


@pytest.mark.asyncio(loop_scope="module")
async def test_who_logs_in_is_not_counted(visitor: httpx.AsyncClient) -> None:
    answers = [await visitor.post("/login", data={"key": ADA_KEY}) for _ in range(2 * FAILURES_OF_AN_ADDRESS)]

    assert {answer.status_code for answer in answers} == {303}
