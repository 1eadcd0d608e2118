"""Limits on what runs at once, while workers and PostgreSQL are killed."""

import os
import signal

import httpx

from tests.chaos.producer import Mix
from tests.chaos.scenario import Scenario
from tests.chaos.scenarios import nothing_more
from tests.chaos.scene import Scene, Setup

QUOTA, KEYS, EACH = 8, 6, 2
OWNERS = "SELECT user_id FROM onthedot.users WHERE role = 'admin'"


def break_limited(scene: Scene) -> None:
    """Kill a worker, the server, and a worker again."""
    scene.put_up()
    _limit(scene)
    scene.begin_load()
    for number in range(scene.times):
        scene.pause(2.0, 3.0)
        if number % 3 == 1:
            with scene.broken("kill -9 of the server", "database"):
                scene.server.kill()
                scene.server.start()
        else:
            pid = scene.a_worker()
            with scene.struck("kill -9", pid):
                os.kill(pid, signal.SIGKILL)
    scene.pause(2.0, 3.0)


def _limit(scene: Scene) -> None:
    """Limit what runs of whoever creates the jobs."""
    headers = {"Authorization": f"Bearer {scene.house.key}"}
    ((owner,),) = scene.server.query(OWNERS)
    with httpx.Client(base_url=f"{scene.house.url}/api/v1", headers=headers, timeout=30) as api:
        version = api.get(f"/users/{owner}").raise_for_status().headers["ETag"]
        body = {"job_quotas": {"max_concurrent_jobs": QUOTA}}
        api.patch(f"/users/{owner}", json=body, headers={"If-Match": version}).raise_for_status()


SCENARIOS = [
    Scenario(
        name="limits, workers and PostgreSQL killed",
        bar="never more than a limit says; nothing stays taken",
        full=30,
        sample=3,
        setup=Setup(
            workers=3,
            per_second=20,
            mix=Mix(seconds=(0.1, 0.6), quota=QUOTA, keys=KEYS, each=EACH),
        ),
        act=break_limited,
        judge=nothing_more,
    ),
]
