"""What an administrator can do to sessions: end them, cancel their statements, take all there are, forbid writing."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial

import httpx
import psycopg

from tests.chaos.house import wait_for
from tests.chaos.network_scenarios import nothing_doubled
from tests.chaos.producer import Mix
from tests.chaos.scenario import Result, Scenario
from tests.chaos.scene import Scene, Setup

STORM_SECONDS = 4.0
RECOVERY_SECONDS = 10.0
EVERY_SECONDS = 0.1
AT_RANDOM = " FROM pg_stat_activity WHERE application_name LIKE 'onthedot%' ORDER BY random() LIMIT 2"
LISTENERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'onthedot listener'"
)
ALL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'onthedot%'"
LEFT = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'onthedot%'"
MOST_SESSIONS = 300
TAKERS = 8
TAKING_SECONDS = 30.0
WRITES_ALL_THE_SAME = "-c default_transaction_read_only=off"


def storm(scene: Scene, function: str) -> None:
    """Strike two sessions at random ten times a second, and once all that listen."""
    scene.put_up()
    scene.begin_load()
    struck = 0
    for _ in range(scene.times):
        scene.pause(2.0, 3.0)
        with (
            scene.broken(function, "database"),
            psycopg.connect(scene.server.dsn, autocommit=True) as session,
        ):
            until = time.monotonic() + STORM_SECONDS
            while time.monotonic() < until:
                struck += session.execute(f"SELECT {function}(pid) {AT_RANDOM}").rowcount
                time.sleep(EVERY_SECONDS)
            session.execute(LISTENERS)
    scene.notes.append(f"struck {struck} times")
    scene.let_recover(seconds=RECOVERY_SECONDS)


def take_all_slots(scene: Scene) -> None:
    """Take every connection that there is, also those that the house had."""
    scene.put_up()
    scene.begin_load()
    for _ in range(scene.times):
        scene.pause(3.0, 4.0)
        with scene.broken("no slots", "database"), ExitStack() as taken:
            first = taken.enter_context(psycopg.connect(scene.server.dsn, autocommit=True))
            if not wait_for(partial(_take_more, scene, first, taken), seconds=TAKING_SECONDS):
                raise RuntimeError("the house is always faster")
            time.sleep(STORM_SECONDS)
    scene.let_recover(seconds=RECOVERY_SECONDS)


def forbid_writing(scene: Scene) -> None:
    """Make the primary read-only for a while, as some do in a switch-over."""
    scene.put_up()
    scene.begin_load()
    for _ in range(scene.times):
        scene.pause(3.0, 4.0)
        with scene.broken("read-only", "database"):
            _let_write(scene, may="on")
            said = _until_ready_is(scene, 503)
            scene.pause(STORM_SECONDS, STORM_SECONDS)
            _let_write(scene, may="off")
            _until_ready_is(scene, 200)
        if "read-only" not in said:
            raise RuntimeError(f"/readyz says {said}")
    scene.let_recover(seconds=RECOVERY_SECONDS)


def unavailable(result: Result) -> Iterator[str]:
    """Promise that the API says 503 meanwhile, and that nothing is done twice."""
    if not result.answers.unavailable:
        yield "the API never said 503"
    yield from nothing_doubled(result)


def _take_more(scene: Scene, first: "psycopg.Connection[tuple[object, ...]]", taken: ExitStack) -> bool:
    """End the house's sessions, be faster in taking some of what that frees; return whether none is left to it."""
    first.execute(ALL)
    with ThreadPoolExecutor(TAKERS) as takers:
        for sessions in takers.map(lambda _: _take_what_is_free(scene.server.dsn), range(TAKERS)):
            for session in sessions:
                taken.enter_context(session)
    return first.execute(LEFT).fetchone() == (0,)


def _take_what_is_free(dsn: str) -> "list[psycopg.Connection[tuple[object, ...]]]":
    sessions: list[psycopg.Connection[tuple[object, ...]]] = []
    with suppress(psycopg.OperationalError):
        while len(sessions) < MOST_SESSIONS:
            sessions.append(psycopg.connect(dsn, connect_timeout=5))
    return sessions


def _let_write(scene: Scene, *, may: str) -> None:
    with psycopg.connect(scene.server.dsn, autocommit=True, options=WRITES_ALL_THE_SAME) as session:
        session.execute(f"ALTER SYSTEM SET default_transaction_read_only = {may}")
        session.execute("SELECT pg_reload_conf()")


def _until_ready_is(scene: Scene, status: int) -> str:
    """Wait for what `/readyz` answers; return its text."""
    said: list[httpx.Response] = []

    def look() -> bool:
        said.append(httpx.get(f"{scene.house.url}/readyz", timeout=15))
        return said[-1].status_code == status

    if not wait_for(look, seconds=30):
        raise RuntimeError(f"/readyz does not become {status}")
    return said[-1].text


STEADY = Setup(lease_seconds=10.0, per_second=30, mix=Mix(seconds=(0.0, 0.5)))
SCENARIOS = [
    *(
        Scenario(
            name=name,
            bar="0 lost, 0 doubled",
            full=3,
            sample=1,
            setup=STEADY,
            act=partial(storm, function=function),
            judge=nothing_doubled,
        )
        for name, function in (
            ("sessions ended at random", "pg_terminate_backend"),
            ("statements cancelled at random", "pg_cancel_backend"),
        )
    ),
    Scenario(
        name="no connection slots left",
        bar="503s, recovery, 0 lost, 0 doubled",
        full=3,
        sample=1,
        setup=STEADY,
        act=take_all_slots,
        judge=unavailable,
    ),
    Scenario(
        name="primary read-only for a while",
        bar="503s, /readyz says why, recovery, 0 lost, 0 doubled",
        full=3,
        sample=1,
        setup=STEADY,
        act=forbid_writing,
        judge=unavailable,
    ),
]
