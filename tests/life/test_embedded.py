"""The embedded PostgreSQL through its life: first and second start, crashes of all kinds, hostile folders."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import psycopg
import pytest

from app.db.embedded import EmbeddedPostgres
from app.db.server_account import EmbeddedServerError, ServerAccount
from app.db.server_binaries import binaries_for, find_binaries
from tests.life.processes import eventually, has_ended

ROOT = Path(__file__).parents[2]
IS_ROOT = os.geteuid() == 0

# Starts the server, prints its connection string, and stops it when its input ends.
PROGRAM = """
import sys
from pathlib import Path
from app.db.embedded import EmbeddedPostgres
server = EmbeddedPostgres(Path(sys.argv[1]), max_connections=int(sys.argv[2]))
print(server.start(), flush=True)
sys.stdin.read()
server.stop()
"""


class Program:
    """Another program that runs the server of a data folder."""

    def __init__(self, data_dir: Path, *, max_connections: int = 40) -> None:
        command = [sys.executable, "-c", PROGRAM, str(data_dir), str(max_connections)]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pid = self._process.pid

    def dsn(self) -> str:
        """Wait until the server runs and return its connection string."""
        assert self._process.stdout
        return self._process.stdout.readline().strip()

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def finish(self) -> int:
        self._process.communicate()
        return self._process.returncode


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """A folder that does not exist yet, at a path short enough for a socket and open to other users."""
    parent = Path(tempfile.mkdtemp(prefix="onthedot-"))
    parent.chmod(0o711)
    yield parent / "data"
    stop_leftovers(parent)
    shutil.rmtree(parent)


def server(data_dir: Path, *, max_connections: int = 40) -> EmbeddedPostgres:
    return EmbeddedPostgres(data_dir, max_connections=max_connections)


def stop_leftovers(parent: Path) -> None:
    """Stop what a failed test has left running."""
    for path in parent.rglob("postmaster.pid"):
        left = EmbeddedPostgres(path.parents[1], max_connections=40)
        left.start()
        left.stop()


def ask(dsn: str, question: str) -> object:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(question).fetchone()
    return row[0] if row else None


def run_sql(dsn: str, statement: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute(statement)


def postmaster_pid(data_dir: Path) -> int:
    return int((data_dir / "postgres" / "postmaster.pid").read_text().split()[0])


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_first_start_makes_a_durable_database_for_an_owner_who_is_no_superuser(data_dir: Path) -> None:
    postgres = server(data_dir)
    dsn = postgres.start()
    try:
        assert ask(dsn, "SELECT current_database()") == "onthedot"
        assert ask(dsn, "SELECT usesuper FROM pg_user WHERE usename = current_user") is False
        shown = {name: ask(dsn, f"SHOW {name}") for name in ("fsync", "data_checksums", "server_encoding")}
        assert shown == {"fsync": "on", "data_checksums": "on", "server_encoding": "UTF8"}
        assert str(ask(dsn, "SHOW server_version")).startswith("18.")
        # What migrations do:
        run_sql(
            dsn, "CREATE ROLE auditor NOLOGIN; CREATE SCHEMA audit; GRANT USAGE ON SCHEMA audit TO auditor"
        )
        assert ask(dsn, "SELECT has_schema_privilege('auditor', 'audit', 'USAGE')") is True
    finally:
        postgres.stop()


def test_second_start_finds_the_data_and_the_same_connection_string(data_dir: Path) -> None:
    postgres = server(data_dir)
    first = postgres.start()
    run_sql(first, "CREATE TABLE kept AS SELECT 42 AS answer")
    postgres.stop()
    second = postgres.start()
    try:
        assert second == first
        assert ask(second, "SELECT answer FROM kept") == 42
    finally:
        postgres.stop()


def test_server_lives_outside_the_terminals_session_until_stop_which_frees_the_folder(data_dir: Path) -> None:
    postgres = server(data_dir)
    postgres.start()
    pid = postmaster_pid(data_dir)
    assert os.getsid(pid) != os.getsid(0)
    postgres.stop()
    assert has_ended(pid)
    other = server(data_dir)
    other.start()
    other.stop()


def test_connection_string_is_kept_where_only_the_owner_can_read_it(data_dir: Path) -> None:
    postgres = server(data_dir)
    dsn = postgres.start()
    postgres.stop()
    assert (data_dir / "dsn").read_text().strip() == dsn
    assert mode(data_dir / "dsn") == 0o600


def test_users_of_the_machine_do_not_get_in_without_the_password(data_dir: Path) -> None:
    postgres = server(data_dir)
    dsn = postgres.start()
    try:
        for user, password in [("onthedot", "wrong"), ("postgres", "wrong"), ("postgres", "")]:
            with pytest.raises(psycopg.OperationalError, match="password"):
                psycopg.connect(dsn, user=user, password=password)
    finally:
        postgres.stop()


def test_second_program_is_refused_and_told_who_holds_the_folder(data_dir: Path) -> None:
    holder = Program(data_dir)
    holder.dsn()
    try:
        with pytest.raises(EmbeddedServerError, match=rf"{data_dir} is held by .*\(pid {holder.pid}\)"):
            server(data_dir).start()
    finally:
        assert holder.finish() == 0


def test_server_of_a_killed_program_is_taken_over(data_dir: Path) -> None:
    killed = Program(data_dir)
    first = killed.dsn()
    pid = postmaster_pid(data_dir)
    killed.kill()
    postgres = server(data_dir)
    try:
        assert postgres.start() == first
        assert postmaster_pid(data_dir) == pid
        assert ask(first, "SELECT 1") == 1
    finally:
        postgres.stop()
    assert has_ended(pid)


def test_server_taken_over_gets_changed_settings(data_dir: Path) -> None:
    killed = Program(data_dir, max_connections=40)
    killed.dsn()
    killed.kill()
    postgres = server(data_dir, max_connections=55)
    try:
        assert ask(postgres.start(), "SHOW max_connections") == "55"
    finally:
        postgres.stop()


def test_server_taken_over_after_its_password_was_lost_gets_a_new_one(data_dir: Path) -> None:
    killed = Program(data_dir)
    first = killed.dsn()
    killed.kill()
    (data_dir / "dsn").unlink()
    postgres = server(data_dir)
    try:
        second = postgres.start()
        assert urlsplit(second).password != urlsplit(first).password
        assert ask(second, "SELECT 1") == 1
    finally:
        postgres.stop()


def test_recovers_after_everything_was_killed_while_a_session_lingers(data_dir: Path) -> None:
    killed = Program(data_dir)
    dsn = killed.dsn()
    run_sql(dsn, "CREATE TABLE kept AS SELECT 42 AS answer")
    session = psycopg.connect(dsn)
    # A stopped process notices nothing: it keeps the shared memory of the dead server in use.
    os.kill(session.info.backend_pid, signal.SIGSTOP)
    killed.kill()
    os.kill(postmaster_pid(data_dir), signal.SIGKILL)
    postgres = server(data_dir)
    try:
        assert ask(postgres.start(), "SELECT answer FROM kept") == 42
        assert has_ended(session.info.backend_pid)
    finally:
        session.close()
        postgres.stop()


def test_pid_of_a_crashed_server_may_belong_to_somebody_else_now(data_dir: Path) -> None:
    killed = Program(data_dir)
    killed.dsn()
    killed.kill()
    pid_file = data_dir / "postgres" / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    os.kill(int(lines[0]), signal.SIGKILL)
    eventually(lambda: has_ended(int(lines[0])))
    owner = (data_dir / "postgres").stat().st_uid
    with subprocess.Popen(["sleep", "600"], user=owner if IS_ROOT else None) as stranger:
        pid_file.write_text("\n".join([str(stranger.pid), *lines[1:], ""]))
        for lock in (data_dir / "run").glob(".s.PGSQL.*.lock"):
            lock.write_text("\n".join([str(stranger.pid), *lines[1:], ""]))
        postgres = server(data_dir)
        try:
            assert ask(postgres.start(), "SELECT 1") == 1
            assert stranger.poll() is None
        finally:
            postgres.stop()
            stranger.kill()


def test_cluster_half_made_when_killed_is_made_again(data_dir: Path) -> None:
    killed = Program(data_dir)
    eventually(lambda: any(data_dir.glob("postgres*/base")))
    killed.kill()
    assert not (data_dir / "postgres").exists(), "the cluster was whole before it could be interrupted"
    postgres = server(data_dir)
    try:
        assert ask(postgres.start(), "SELECT 1") == 1
    finally:
        postgres.stop()


def test_cluster_half_made_is_swept_away(data_dir: Path) -> None:
    half_made = data_dir / "postgres.new-1234"
    (half_made / "base").mkdir(parents=True)
    postgres = server(data_dir)
    postgres.start()
    postgres.stop()
    assert not half_made.exists()


def test_server_that_dies_is_started_again_at_the_same_address(data_dir: Path) -> None:
    postgres = server(data_dir)
    dsn = postgres.start()
    try:
        pid = postmaster_pid(data_dir)
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: has_ended(pid))
        postgres.keep_running()
        assert ask(dsn, "SELECT 1") == 1
    finally:
        postgres.stop()


def test_log_is_kept_to_the_newest_files(data_dir: Path) -> None:
    postgres = server(data_dir)
    postgres.start()
    try:
        for day in range(10, 31):
            (data_dir / "log" / f"postgresql-200001{day}T000000.log").touch()
        postgres.keep_running()
        names = sorted(path.name for path in (data_dir / "log").iterdir())
        assert len(names) == 10
        assert names[0] == "postgresql-20000122T000000.log"
        assert names[-1] > "postgresql-2020"
    finally:
        postgres.stop()


@pytest.mark.parametrize("name", ["with spaces and 'quotes'", "x" * 120, "comma,and$dollar"])
def test_path_unfit_for_a_socket_makes_the_server_listen_on_loopback_at_a_lasting_port(
    data_dir: Path, name: str
) -> None:
    postgres = server(data_dir / name)
    first = postgres.start()
    try:
        assert urlsplit(first).hostname == "127.0.0.1"
        assert ask(first, "SELECT 1") == 1
    finally:
        postgres.stop()
    assert postgres.start() == first
    postgres.stop()


def test_existing_folder_keeps_its_permissions(data_dir: Path) -> None:
    data_dir.mkdir()
    data_dir.chmod(0o700)
    postgres = server(data_dir)
    try:
        assert ask(postgres.start(), "SELECT 1") == 1
    finally:
        postgres.stop()
    assert mode(data_dir) == 0o700


@pytest.mark.skipif(not IS_ROOT, reason="only root's server runs as another user")
def test_root_runs_the_server_as_another_user_below_a_folder_of_its_own(data_dir: Path) -> None:
    data_dir.mkdir()
    data_dir.chmod(0o700)
    postgres = server(data_dir / "below")
    try:
        assert ask(postgres.start(), "SELECT 1") == 1
        assert psutil.Process(postmaster_pid(data_dir / "below")).uids().effective != 0
    finally:
        postgres.stop()


@pytest.mark.skipif(not IS_ROOT, reason="only root's server runs as another user")
def test_programs_that_the_servers_user_cannot_reach_are_copied(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private, package = data_dir / "private", find_binaries().parents[1]
    for source in (package, package.with_name(f"{package.name}.libs")):
        if source.is_dir():
            shutil.copytree(source, private / source.name)
    private.chmod(0o700)
    monkeypatch.syspath_prepend(private)
    account = ServerAccount.for_cluster(data_dir / "postgres")
    programs = binaries_for(account, copies=[data_dir])
    assert private not in programs.parents
    assert "18." in account.run([str(programs / "postgres"), "--version"], folder=data_dir, env={})
    assert mode(private) == 0o700


def test_folder_with_something_else_in_it_is_refused(data_dir: Path) -> None:
    (data_dir / "postgres").mkdir(parents=True)
    (data_dir / "postgres" / "diary.txt").write_text("mine")
    with pytest.raises(EmbeddedServerError, match="holds no PostgreSQL cluster"):
        server(data_dir).start()


def test_cluster_of_another_major_version_is_refused(data_dir: Path) -> None:
    (data_dir / "postgres").mkdir(parents=True)
    (data_dir / "postgres" / "PG_VERSION").write_text("17\n")
    with pytest.raises(EmbeddedServerError, match="made by PostgreSQL 17 and this is 18"):
        server(data_dir).start()


def test_folder_that_cannot_be_made_is_named(data_dir: Path) -> None:
    data_dir.write_text("a file where the folder should be")
    with pytest.raises(EmbeddedServerError, match=f"{data_dir}.* ONTHEDOT_DATA_DIR"):
        server(data_dir).start()


def test_missing_package_is_named_with_both_remedies() -> None:
    without_packages = [sys.executable, "-S", "-c", "from app.db.server_binaries import *; find_binaries()"]
    found = subprocess.run(without_packages, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert "pip install 'onthedot[embedded]'" in found.stderr
    assert "ONTHEDOT_DATABASE_URL" in found.stderr
