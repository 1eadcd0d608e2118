"""One scenario's stage: a server, perhaps a proxy, a house, producers; a nemesis that writes down what it breaks."""

import random
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import msgspec
import psycopg

from app.db.server_account import EmbeddedServerError
from app.db.server_address import DATABASE, LOOPBACK, OWNER
from tests.chaos.figures import Return, returns
from tests.chaos.history import History, Snapshot, save_changes
from tests.chaos.house import House, wait_for
from tests.chaos.journals import Clock, Effect, Fault, Journal, now, read
from tests.chaos.producer import Mix, Producer
from tests.chaos.proxy import Proxy
from tests.chaos.server import ChaosServer
from tests.chaos.wal import make_slot, read_slot

QUIET_SECONDS = 120.0
"""How long after the last fault everything has to end."""
ORPHAN_SECONDS = 6.0
"""How long after a worker the processes that it has started may go on."""
AT_WORK = "SELECT pid FROM onthedot.workers WHERE stopped_at IS NULL"
LIVE = "SELECT count(*) FROM onthedot.executions"
SNAPSHOT = """
    SELECT (SELECT count(*) FROM onthedot.executions), (SELECT count(*) FROM onthedot.execution_history),
           (SELECT count(*) FROM onthedot.executions WHERE status IN ('SCHEDULED', 'RUNNING')),
           (SELECT count(*) FROM pg_locks WHERE NOT granted),
           (SELECT count(*) FROM pg_stat_activity
             WHERE datname = current_database() AND state LIKE 'idle in transaction%'
               AND state_change < now() - interval '1 s'),
           (SELECT count(*) FROM onthedot.limit_holders)"""


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """What a scenario needs."""

    lease_seconds: float = 3.0
    workers: int = 2
    per_second: float = 60.0
    batch: int = 1
    producers: int = 2
    mix: Mix = Mix()
    proxied: bool = False
    house: dict[str, str] = {}


class Scene:
    """Puts the stage up, lets things be broken on it, and takes down what happened."""

    def __init__(self, folder: Path, setup: Setup, *, seed: int, times: int) -> None:
        self.folder, self.setup, self.seed, self.times = folder, setup, seed, times
        self.random = random.Random(seed)  # noqa: S311 - the same for the same seed
        self.server: ChaosServer
        self.house: House
        self.proxy: Proxy | None = None
        self.notes: list[str] = []
        """What else was seen; shown with the figures."""
        self.missing: tuple[str, ...] = ()
        self.holds: list[float] = []
        """How long handlers have held up their process, in seconds."""
        self._stack = ExitStack()
        self._producers: list[Producer] = []
        self._own: list[Producer] = []
        self._faults = Journal(folder / "faults.jsonl")
        self._clocks = Journal(folder / "clocks.jsonl")
        self._asked = Journal(folder / "asked.jsonl")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for producer in self._producers:
            producer.stop()
        self._stack.close()

    def put_up(self, server: ChaosServer | None = None, *, dsn: str | None = None) -> None:
        """Start server and house; what is committed from now on can be read."""
        if server is None:
            server = ChaosServer.create(self.folder / "server")
            self._stack.callback(server.destroy)
        self.server = server
        server.migrate()
        make_slot(server.dsn)
        if self.setup.proxied:
            self.proxy = self._stack.enter_context(Proxy(server.dsn))
        self.start_house(DATABASE_URL=dsn or (self.proxy.dsn if self.proxy else server.dsn))

    def put_up_embedded(self) -> None:
        """Start a house with its own PostgreSQL, prepared so that what is committed can be read."""
        data = self.folder / "data"
        self.server = ChaosServer.prepare_embedded(data)
        self._stack.callback(shutil.rmtree, data, ignore_errors=True)
        self.start_house()
        make_slot(self.server.dsn)

    def start_house(self, **settings: str) -> None:
        """Start a house, and make its task."""
        self.house = House(
            self.folder,
            lease_seconds=self.setup.lease_seconds,
            workers=self.setup.workers,
            **self.setup.house | settings,
        )
        self._stack.callback(self.house.close)
        self.house.start()
        self.house.make_task()

    def callback(self, function: Any, *arguments: object) -> None:
        """Do this when the stage is taken down, before what was put up earlier."""
        self._stack.callback(function, *arguments)

    def begin_load(self) -> None:
        """Let producers create jobs, until `end_load`."""
        self.sample_clock()
        setup = self.setup
        first = len(self._producers)
        for number in range(first, first + setup.producers):
            producer = Producer(
                self.house.url,
                self.house.key,
                self._asked,
                number=number + 1,
                seed=self.seed,
                per_second=setup.per_second / setup.producers,
                batch=setup.batch,
                mix=setup.mix,
            )
            self._producers.append(producer)
            producer.start()

    def create(self, key: str, *, schedule: dict[str, object] | None = None, **parameters: object) -> None:
        """Create one job, as a producer would; it runs at once unless its schedule says otherwise."""
        producer = Producer(
            self.house.url, self.house.key, self._asked, number=1000 + len(self._own), seed=0, per_second=1, batch=1,
            mix=self.setup.mix,
        )  # fmt: skip
        self._own.append(producer)
        producer.create({"key": key} | parameters, schedule=schedule or {"type": "IMMEDIATE"})

    def end_load(self) -> None:
        """Let them end, each when it knows its last answer or gives up on it."""
        for producer in self._producers:
            producer.stop()
        for producer in self._producers:
            producer.join()
        self.sample_clock()

    def abandon_load(self) -> None:
        """Let them end at once: the house is gone, and so is its address."""
        for producer in self._producers:
            producer.abandon()
        self.end_load()

    def pause(self, low: float, high: float) -> None:
        """Let things go on for a while."""
        time.sleep(self.random.uniform(low, high))

    def let_recover(self, *, seconds: float) -> None:
        """Wait until as many jobs start as before the last fault, at most so long."""
        deadline = time.monotonic() + seconds
        while self._last_return().full_rate is None and time.monotonic() < deadline:
            time.sleep(0.5)

    def _last_return(self) -> Return:
        effects, faults = read(self.folder / "effects", Effect), read(self.folder / "faults.jsonl", Fault)
        return returns(History(asked=[], effects=effects, changes=[], faults=faults[-1:], clocks=[]))[0]

    def sample_clock(self) -> None:
        """Note what the server's clock shows: this machine's."""
        self._clocks.append(Clock(at=now(), wall=time.time()))

    @contextmanager
    def broken(self, kind: str, target: str, *, detail: str = "") -> Iterator[None]:
        """Note what is broken from here to the end."""
        began = now()
        try:
            yield
        finally:
            self.note(kind, target, began=began, ended=now(), detail=detail)

    @contextmanager
    def struck(self, kind: str, worker: int) -> Iterator[None]:
        """Note what is done to a worker from here to the end; the processes that it has started end with it."""
        began, others = now(), self.house.children_of(worker)
        try:
            yield
        finally:
            for pid in others:
                self.note(f"{kind} of its worker", f"pid {pid}", began=began, ended=now() + ORPHAN_SECONDS)
            self.note(kind, f"pid {worker}", began=began, ended=now())

    def a_worker(self) -> int:
        """Return a worker, once all of them are at work: who was struck before is back."""

        def look() -> bool:
            registered = {pid for (pid,) in self.server.query(AT_WORK)}
            workers = self.house.processes("worker")
            return len(workers) == self.setup.workers and registered.issuperset(workers)

        assert wait_for(look, seconds=60), "the workers do not come back"
        return self.random.choice(sorted(self.house.processes("worker")))

    def note(self, kind: str, target: str, *, began: float, ended: float, detail: str = "") -> None:
        """Note a fault that has been."""
        fault = Fault(kind=kind, target=target, began=began, ended=ended, seed=self.seed, detail=detail)
        self._faults.append(fault)

    def come_to_rest(self) -> bool:
        """Wait until nothing is live any more; return whether it came to that."""
        return wait_for(self._is_quiet, seconds=QUIET_SECONDS)

    def take_down(self, *, damage: bool = True) -> None:
        """Write down what was committed, and what is left."""
        row = self._settled_snapshot()
        found = self._damage() if damage else ()
        save_changes(self.folder, read_slot(self.server.dsn), Snapshot(**row, damage=found))

    def _is_quiet(self) -> bool:
        with suppress(psycopg.OperationalError):
            return self.server.query(LIVE) == [(0,)]
        return False

    def _settled_snapshot(self) -> dict[str, int]:
        """Return what is left, once nobody waits any more: a loop may be in its turn, or have yet to begin it."""
        names = ("live", "finished", "leased", "waiting_locks", "idle_in_transaction", "holders")
        row: dict[str, int] = {}

        def look() -> bool:
            row.update(zip(names, (int(str(value)) for value in self.server.query(SNAPSHOT)[0]), strict=True))
            return row["waiting_locks"] == row["idle_in_transaction"] == row["holders"] == 0

        wait_for(look, seconds=5)
        return row

    def _damage(self) -> tuple[str, ...]:
        """Let PostgreSQL check its own pages and indexes."""
        self.server.query("CREATE EXTENSION IF NOT EXISTS amcheck")
        address = self.server.address
        host, port = address.socket_folder or LOOPBACK, address.port
        options = [
            f"--host={host}",
            f"--port={port}",
            f"--username={OWNER}",
            "--schema=onthedot",
            "--no-password",
            DATABASE,
        ]
        try:
            self.server.cluster.run("pg_amcheck", *options, env={"PGPASSWORD": self.server.password})
        except EmbeddedServerError as error:
            return (str(error),)
        return ()
