"""`python -m tests.chaos.mutants`: an engine that is wrong in one place must not pass.

Each mutant is a copy of the repository in which one text is another one. It is killed if its test fails; before that
the same test must pass on an unchanged copy, or its failure would prove nothing. One that survives, or whose text is
not there any more, makes this fail.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tests.conftest import SERVER
from tests.life.processes import ROOT
from tests.postgres import start_server

COPIED = ("app", "migrations", "templates", "tests", "docs", "pyproject.toml", "README.md", "CHANGELOG.md")
TIMEOUT_SECONDS = 400
TESTS_FAILED = 1
"""Exit status of pytest: tests ran, and some failed. Anything else proves nothing."""
TIMED_OUT = -1
MACHINE = "tests/reliability/test_state_machine.py"
STORE = "tests/db/test_executions_store.py"
WORKER = "tests/worker/test_worker.py"
PROMOTION = "tests/reliability/test_promotion.py"
FENCE = " AND e.lease_epoch = x.lease_epoch"
LIMITED = "tests/reliability/test_limited_interleavings.py::test_no_order_lets_more_run_than_may"
"""Not all of that file: the rest of it changes the same texts, and would miss them."""


class Mutant(msgspec.Struct, frozen=True, kw_only=True):
    """One wrong engine, and the cheapest test that knows it."""

    name: str
    file: str
    right: str
    wrong: str
    test: str


def _sql(name: str, query: str, right: str, wrong: str, test: str = MACHINE) -> Mutant:
    return Mutant(name=name, file=f"app/db/queries/{query}.sql", right=right, wrong=wrong, test=test)


def _python(name: str, file: str, right: str, wrong: str, test: str) -> Mutant:
    return Mutant(name=name, file=f"app/{file}", right=right, wrong=wrong, test=test)


MUTANTS = [
    *(
        _sql(f"{query} without its fence", query, FENCE, "")
        for query in ("arm", "renew", "settle", "retry", "release")
    ),
    _sql(
        "a claim that does not lock",
        "claim_due",
        "       FOR UPDATE SKIP LOCKED\n",
        "",
        f"{STORE}::test_claimers_never_share_an_execution",
    ),
    _sql(
        "no SKIP LOCKED: claims wait for each other",
        "claim_due",
        "FOR UPDATE SKIP LOCKED",
        "FOR UPDATE",
        "tests/chaos/test_claims_pass.py",
    ),
    _sql(
        "a claim under the old epoch",
        "claim_due",
        "lease_epoch = e.lease_epoch + 1",
        "lease_epoch = e.lease_epoch",
    ),
    _sql("token reset on release", "release", "lease_epoch = e.lease_epoch + 1", "lease_epoch = 0"),
    _sql("token kept on retry", "retry", "lease_epoch = e.lease_epoch + 1", "lease_epoch = e.lease_epoch"),
    _sql(
        "token kept by the reaper",
        "reap_running",
        "lease_epoch = e.lease_epoch + 1",
        "lease_epoch = e.lease_epoch",
    ),
    _sql(
        "reaper by age, ignoring renewals",
        "reap_running",
        "AND lease_expires_at < now()",
        "AND claimed_at < now()",
    ),
    _sql(
        "reaper that never gives up on poison",
        "reap_running",
        "(worker_deaths < 3 OR",
        "(true OR",
        f"{STORE}::test_what_a_worker_lets_lapse_is_freed_retried_or_failed",
    ),
    _sql(
        "reaper that leaves suspects lying",
        "reap_running",
        "(worker_deaths < 3 OR",
        "(worker_deaths < 2 OR",
        f"{STORE}::test_what_a_worker_lets_lapse_is_freed_retried_or_failed",
    ),
    _sql(
        "reaper that counts no deaths",
        "reap_running",
        "worker_deaths = e.worker_deaths + lapsed.death, ",
        "",
    ),
    _sql("a death that costs an attempt", "reap_running", "max_attempts = e.max_attempts + 1,", ""),
    _sql("a suspect claimed among others", "claim_due", " AND worker_deaths < 2", ""),
    _sql("arming twice begins twice", "arm", "(e.status = 'SCHEDULED')::int", "1"),
    _sql("what nobody armed can end", "settle", "       AND e.status = 'RUNNING'\n", ""),
    _sql(
        "a release that keeps the attempt",
        "release",
        "attempt_number = e.attempt_number - (e.status = 'RUNNING')::int,",
        "",
        f"{STORE}::test_a_release_takes_back_the_attempt_that_had_not_begun",
    ),
    _sql("cancel that misses what is leased ahead", "cancel_waiting", "'SCHEDULED', ", ""),
    _sql("pause that leaves the lease", "replan_waiting", "lease_epoch = e.lease_epoch + 1, ", ""),
    _sql("a paused queue that gives work away", "claim_due", "q.paused_at IS NOT NULL", "false"),
    _sql("claim before the instant", "claim_due", "AND due_at <= now()", ""),
    _sql(
        "retry without the Idempotency-Key",
        "recall_keys",
        "WHERE",
        "WHERE false AND",
        "tests/api/test_idempotency.py::test_fifty_at_once_under_one_key_are_one_request",
    ),
    _python(
        "acknowledged before the effect",
        "worker/runner.py",
        "value = await handler(attempt)",
        "value = asyncio.ensure_future(handler(attempt)) and None",
        f"{WORKER}::test_runs_a_job_and_records_everything",
    ),
    _python(
        "accepted before it is committed",
        "intake/group_commit.py",
        "stored = await self._store.create([one.submission for one in group])",
        "for one in group: _succeed(one, Stored({j.job_id: None for j in one.submission.jobs}, set()))\n"
        "            stored = await self._store.create([one.submission for one in group])",
        "tests/api/test_idempotency.py::test_fifty_at_once_under_one_key_are_one_request",
    ),
    _python(
        "wake-up by NOTIFY only",
        "worker/claimer.py",
        "            await self._look()",
        "            pass",
        f"{WORKER}::test_runs_a_job_and_records_everything",
    ),
    _python(
        "LISTEN that is not taken up again",
        "db/notifier.py",
        "if self._connection is None or self._connection.is_closed():",
        "if self._connection is None:",
        "tests/db/test_notifier.py::test_a_listener_notices_that_its_connection_is_gone_and_makes_another",
    ),
    _python(
        "the worker's own clock",
        "db/clock.py",
        "return time.monotonic() + self._offset_seconds",
        "return time.time() + 3600",
        f"{WORKER}::test_leases_ahead_and_never_starts_early",
    ),
    _python(
        "forgotten when cancelled, whether armed or not",
        "worker/timers.py",
        "                self._to_cancel.add(claim.lease)\n",
        "                self._waiting.pop(claim.lease)\n",
        "tests/worker/test_timers.py",
    ),
    _python(
        "fired when armed, not at the instant",
        "worker/timers.py",
        "self._to_fire.set(self._clock.monotonic_surely_after(claim.due_at), armed)",
        "self._to_fire.set(0.0, armed)",
        f"{WORKER}::test_leases_ahead_and_never_starts_early",
    ),
    _python(
        "leases that nobody renews",
        "worker/leases.py",
        "            await self._renew(connection, now)\n",
        "",
        f"{WORKER}::test_leases_live_on_while_a_handler_blocks_the_event_loop",
    ),
    _sql(
        "watermark that does not move",
        "advance_jobs",
        "SET materialized_until = x.materialized_until, ",
        "SET ",
        "tests/scheduler/test_materializer.py::test_creates_each_occurrence_once_with_what_the_claim_decides_by",
    ),
    _python(
        "claims on after a freeze",
        "worker/claimer.py",
        " or self._leases.are_all_lapsed()",
        "",
        "tests/worker/test_leases.py",
    ),
    _sql(
        "limits that are looked at without a lock",
        "lock_limits",
        " WHERE pg_try_advisory_xact_lock(hashtextextended(key, 7))",
        "",
        LIMITED,
    ),
    _sql(
        "a late end that frees what is held anew",
        "free_holders",
        " AND h.lease_epoch = x.lease_epoch",
        "",
        LIMITED,
    ),
    _sql(
        "a sweep of what is held by those that run",
        "stale_holders",
        "e.status = 'RUNNING' AND e.lease_epoch = h.lease_epoch",
        "false",
        LIMITED,
    ),
    _sql(
        "a sweep that waits for others who delete",
        "stale_holders",
        " SKIP LOCKED\n",
        "\n",
        "tests/db/test_admissions.py",
    ),
    _sql(
        "a worker that frees and waits for others who do",
        "free_holders",
        " SKIP LOCKED\n",
        "\n",
        "tests/db/test_admissions.py",
    ),
    _sql(
        "a sweep that leaves what lapsed",
        "stale_holders",
        "e.status = 'RUNNING' AND e.lease_epoch = h.lease_epoch",
        "true",
        "tests/db/test_admissions.py",
    ),
    _sql(
        "a new limit to which nothing that runs counts",
        "count_running",
        "e.status = 'RUNNING' AND",
        "false AND",
        LIMITED,
    ),
    _python(
        "a new limit that is told without a lock",
        "db/stores/limits.py",
        '"SELECT pg_advisory_lock(hashtextextended($1, 7))"',
        '"SELECT $1::text"',
        LIMITED,
    ),
    _python(
        "a rate that gives twice",
        "domain/admission.py",
        "self._tokens[limit.key] = self._tokens_of(limit) - 1",
        "self._tokens[limit.key] = self._tokens_of(limit) - 0.5",
        "tests/db/test_admissions.py",
    ),
    _python(
        "back to the old primary",
        "db/primary.py",
        "if 0 < answer.timeline < self.timeline:",
        "if False:",
        PROMOTION,
    ),
    _python(
        "the first primary that answers",
        "db/primary.py",
        'max((one.result() for one in asking if not one.exception()), key=attrgetter("timeline"))',
        "next(one.result() for one in asking if not one.exception())",
        PROMOTION,
    ),
    _python(
        "connections stay with the old primary",
        "db/primary.py",
        "call_soon_threadsafe(connection.terminate)",
        "call_soon_threadsafe(id)",
        PROMOTION,
    ),
    _python(
        "tokens of one timeline on another",
        "db/primary.py",
        "self._bound_to = self.timeline",
        "pass",
        PROMOTION,
    ),
    _python(
        "a worker that keeps what it held on another timeline",
        "worker/worker.py",
        "self._leases.give_up_all()",
        "pass",
        PROMOTION,
    ),
]


def main() -> int:
    """Run all; return 1 if one survives."""
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # takes down what stands, as Ctrl-C does
    chosen = [mutant for mutant in MUTANTS if re.search(options.only, mutant.name)]
    with _server(), _copy() as folder:
        controls = {test: _controlled(folder, test) for test in dict.fromkeys(each.test for each in chosen)}
        survivors = [
            mutant.name for mutant in chosen if not (controls[mutant.test] and _is_killed(folder, mutant))
        ]
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} killed", flush=True)
    return 1 if survivors else 0


def _controlled(folder: Path, test: str) -> bool:
    """Tell whether a test passes where nothing is wrong."""
    passes = _run(folder, test) == 0
    print(
        f"{'control ' if passes else 'NO PROOF'}  {test} {'passes' if passes else 'fails'} unchanged",
        flush=True,
    )
    return passes


def _is_killed(folder: Path, mutant: Mutant) -> bool:
    began = time.monotonic()
    path = folder / mutant.file
    before = path.read_text(encoding="utf-8")
    if before.count(mutant.right) != 1:
        print(
            f"STALE     {mutant.name}: {mutant.right!r} stands {before.count(mutant.right)} times in {mutant.file}"
        )
        return False
    path.write_text(before.replace(mutant.right, mutant.wrong), encoding="utf-8")
    try:
        status = _run(folder, mutant.test)
    finally:
        path.write_text(before, encoding="utf-8")
    word = "killed  " if status == TESTS_FAILED else "SURVIVED" if status == 0 else f"ERROR {status}"
    print(f"{word}  {mutant.name} ({time.monotonic() - began:.0f} s, {mutant.test})", flush=True)
    return status == TESTS_FAILED


def _run(folder: Path, test: str) -> int:
    command: Sequence[str] = (sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", test)
    env = os.environ | {"STATE_MACHINE_SHRINK": "no"}
    try:
        done = subprocess.run(
            command, cwd=folder, env=env, capture_output=True, timeout=TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return TIMED_OUT
    return done.returncode


@contextmanager
def _server() -> Iterator[None]:
    """Run one server for all tests: each would start its own."""
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o711)
        server = start_server(Path(name) / "server")
        os.environ[SERVER] = f"{server.host} {server.port} {server.user} {server.password}"
        try:
            yield
        finally:
            server.stop()


@contextmanager
def _copy() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        for each in COPIED:
            source = ROOT / each
            if source.is_dir():
                shutil.copytree(source, folder / each, ignore=shutil.ignore_patterns("__pycache__"))
            elif source.exists():
                shutil.copy(source, folder / each)
        yield folder


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.mutants", description="Kill wrong engines.")
    parser.add_argument("--only", default="", help="mutants whose name has this regular expression in it")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
