"""The systems that are compared: exact versions, and what each has to reach. The only place that names versions."""

from typing import NamedTuple


class System(NamedTuple):
    """One system.

    `pins` are its packages, of PyPI or npm, itself first. `unfinished` is the SQL that tells whether jobs are left
    to run; a system without it is not on PostgreSQL. `drain_bar` and `spread_bar` are what onthedot's ratio to it is
    to be at least.
    """

    name: str
    script: str
    pins: tuple[str, ...] = ()
    unfinished: str = ""
    drain_bar: float | None = None

    @property
    def spread_bar(self) -> float | None:
        """Ahead of everybody on PostgreSQL."""
        return 1.0 if self.pins and self.unfinished else None


ONTHEDOT = System(
    "onthedot", "onthedot_peer.py", unfinished="SELECT EXISTS (SELECT FROM onthedot.executions)"
)
PEERS = (
    System(
        "pgqueuer",
        "pgqueuer_peer.py",
        ("pgqueuer==1.6.0", "asyncpg==0.32.0", "uvloop==0.23.0"),
        "SELECT EXISTS (SELECT FROM pgqueuer)",
        drain_bar=1.3,
    ),
    System(
        "pg-boss",
        "pgboss_peer.mjs",
        ("pg-boss@12.38.0", "pg@8.23.1", "node@26.10.0"),
        "SELECT EXISTS (SELECT FROM pgboss.job WHERE name = 'noop' AND state < 'completed')",
        drain_bar=1.0,
    ),
    System(
        "graphile-worker",
        "graphile_peer.mjs",
        ("graphile-worker@0.18.0", "pg@8.23.1", "node@26.10.0"),
        "SELECT EXISTS (SELECT FROM graphile_worker._private_jobs)",
    ),
    System(
        "oban",
        "oban_peer.py",
        ("oban==0.7.0", "psycopg[binary]==3.3.9", "psycopg-pool==3.3.3", "orjson==3.13.0", "uvloop==0.23.0"),
        """SELECT EXISTS (SELECT FROM oban_jobs
                           WHERE state IN ('available', 'executing', 'scheduled', 'retryable'))""",
        drain_bar=7.0,
    ),
    System(
        "procrastinate",
        "procrastinate_peer.py",
        ("procrastinate==3.10.0", "psycopg[binary]==3.3.9", "psycopg-pool==3.3.3", "uvloop==0.23.0"),
        "SELECT EXISTS (SELECT FROM procrastinate_jobs WHERE status IN ('todo', 'doing'))",
        drain_bar=30.0,
    ),
    System("celery", "celery_peer.py", ("celery[redis]==5.7.0",)),
)
