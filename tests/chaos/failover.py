"""A synchronous standby takes over, and the old primary, which nobody has shot, comes back as if nothing had been."""

import shutil
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from pathlib import Path

from app.db.postmaster import Postmaster
from app.db.server_address import ServerAddress
from tests.chaos.figures import most
from tests.chaos.house import wait_for
from tests.chaos.producer import Mix
from tests.chaos.proxy import Proxy
from tests.chaos.scenario import Result, Scenario
from tests.chaos.scenarios import nothing_more
from tests.chaos.scene import Scene, Setup
from tests.chaos.server import ChaosServer
from tests.chaos.wal import make_slot

BACK_SECONDS = 10.0
APPLIED = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'"


def fail_over(scene: Scene, *, synchronous: bool) -> None:
    """Freeze the primary, promote the standby, let the house find it, and thaw the old one.

    One that is not synchronous is cut off before that: it cannot have the last commits.
    """
    primary = ChaosServer.create(scene.folder / "primary", settings={"wal_log_hints": "on"})
    scene.callback(destroy, primary)
    primary.migrate()
    line = Proxy(primary.dsn)
    scene.callback(line.close)
    standby = standby_of(primary, scene.folder / "standby", by=line.dsn)
    scene.callback(destroy, standby)
    _make_slot_on(standby, primary)
    if synchronous:
        make_synchronous(primary)
    hosts = f"127.0.0.1:{primary.address.port},127.0.0.1:{standby.address.port}"
    account = f"{primary.dsn.split('@')[0]}@"
    scene.server = standby
    dsn = f"{account}{hosts}/onthedot?target_session_attrs=read-write"
    scene.start_house(DATABASE_URL=dsn)
    scene.begin_load()
    scene.pause(4.5, 5.5)
    if not synchronous:
        line.silent = frozenset({"down"})
        scene.pause(1.5, 2.0)
    with scene.broken("failover", "database"):
        primary.send_signal(signal.SIGSTOP)
        promote(standby)
    scene.let_recover(seconds=BACK_SECONDS + 1)
    if synchronous:
        _thaw(scene, primary, standby)


def _thaw(scene: Scene, zombie: ChaosServer, primary: ChaosServer) -> None:
    with scene.broken("zombie thawed", "database"):
        zombie.send_signal(signal.SIGCONT)
        scene.pause(4.0, 5.0)
    scene.notes.append(f"the zombie has {_finished(zombie)} finished, the new primary {_finished(primary)}")
    scene.pause(2.0, 3.0)


def standby_of(primary: ChaosServer, directory: Path, *, by: str) -> ChaosServer:
    """Make a standby. `by` is where it finds the primary."""
    directory.mkdir()
    directory.chmod(0o711)
    made = replace(
        ChaosServer._at(directory), address=ServerAddress.on_free_port(), password=primary.password
    )
    connection = f"{by}?application_name=standby"
    made.cluster.folder.mkdir()
    _give(made)
    made.cluster.run(
        "pg_basebackup", f"--dbname={connection}", "--pgdata=.", "--write-recovery-conf",
        "--checkpoint=fast", "--wal-method=stream",
    )  # fmt: skip
    with (made.cluster.folder / "postgresql.auto.conf").open("a", encoding="utf-8") as file:
        file.write(f"port = {made.address.port}\nhot_standby_feedback = on\n")
        file.write("unix_socket_directories = ''\n")
    made = replace(made, postmaster=Postmaster(made.cluster, socket_folder=directory))
    made.start()
    return made


def promote(standby: ChaosServer) -> None:
    """Make it the primary, on a new timeline."""
    standby.query("SELECT pg_promote(true, 60)")


def make_synchronous(primary: ChaosServer) -> None:
    """Have the primary confirm nothing that its standby does not have."""
    for setting in ("synchronous_standby_names = '*'", "synchronous_commit = 'remote_apply'"):
        primary.query(f"ALTER SYSTEM SET {setting}")
    primary.query("SELECT pg_reload_conf()")
    assert wait_for(lambda: primary.query(APPLIED) == [(1,)], seconds=30), "the standby is not synchronous"


def _make_slot_on(standby: ChaosServer, primary: ChaosServer) -> None:
    """Make the slot by which its commits can be read, also after its promotion; that waits until the primary says
    which transactions are under way."""
    with ThreadPoolExecutor(1) as pool:
        making = pool.submit(make_slot, standby.dsn)
        while not making.done():
            primary.query("SELECT pg_log_standby_snapshot()")
            wait([making], timeout=0.5)
        making.result()


def _give(server: ChaosServer) -> None:
    """Let the server's account write into its folder."""
    server.cluster._account.take_over(server.directory)
    server.cluster.folder.chmod(0o700)


def _finished(server: ChaosServer) -> int:
    return int(str(server.query("SELECT count(*) FROM onthedot.execution_history")[0][0]))


def destroy(server: ChaosServer) -> None:
    """End a server, frozen or not."""
    if server.postmaster.is_running():
        server.send_signal(signal.SIGCONT)
        server.stop_at_once()
    shutil.rmtree(server.directory, ignore_errors=True)


def back_in_time(result: Result) -> Iterator[str]:
    """Promise a first start on the new primary within 10 s."""
    first = most([each.first_start for each in result.returns if each.kind == "failover"])
    if first is None or first > BACK_SECONDS:
        yield f"the first start after the failover came after {first or float('inf'):.2f} s"


SCENARIOS = [
    Scenario(
        name="failover, zombie thawed",
        bar="0 acknowledged lost, 0 stale accepted, back within 10 s",
        full=5,
        sample=1,
        setup=Setup(mix=Mix(seconds=(0.0, 0.5)), per_second=30),
        act=partial(fail_over, synchronous=True),
        judge=back_in_time,
        once_a_stage=True,
    ),
    Scenario(
        name="negative control: failover, asynchronous standby",
        bar="acknowledged jobs are lost, and the checker says so (I24)",
        full=1,
        sample=1,
        setup=Setup(mix=Mix(seconds=(0.0, 0.2)), per_second=30),
        act=partial(fail_over, synchronous=False),
        judge=nothing_more,
        must_break="I24",
    ),
]
