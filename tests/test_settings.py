"""Settings come from the environment, say what is wrong with them, and keep secrets to themselves."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.settings import (
    SUPERVISOR_FD,
    ClientSettings,
    InvalidSetting,
    Settings,
    child_environment,
    misspelt_variables,
    take_supervisor_fd,
    variable,
)

KEY = "k" * 32


def read(**settings: str) -> Settings:
    """Read settings from variables; `port` stands for `ONTHEDOT_PORT`."""
    return Settings.from_env({variable(name): text for name, text in settings.items()})


def test_an_empty_environment_gives_the_defaults() -> None:
    settings = Settings.from_env({})

    assert settings == Settings()
    assert (settings.host, settings.port, settings.database_url) == ("127.0.0.1", 8080, None)
    assert settings.roles == ("api", "materializer", "worker")
    assert settings.worker_processes == (os.cpu_count(), os.cpu_count())
    assert (settings.lease_seconds, settings.lookahead_ms, settings.horizon_seconds) == (30, 2000, 3600)
    assert (settings.allow_shell, settings.allow_private_targets) == (False, False)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("port", "0", 0),
        ("port", " 9000 ", 9000),
        ("port", "", 8080),
        ("port", "  ", 8080),
        ("roles", "worker", ("worker",)),
        ("roles", " api , worker,", ("api", "worker")),
        ("worker_processes", "4", (4, 4)),
        ("worker_processes", "1..8", (1, 8)),
        ("queues", "critical,bulk", ("critical", "bulk")),
        ("task_modules", "", ()),
        ("allow_shell", "TRUE", True),
        ("allow_shell", "yes", True),
        ("allow_shell", "0", False),
        ("lease_seconds", "3.5", 3.5),
        ("grace_seconds", "0", 0.0),
        ("data_dir", "/srv/on the dot", Path("/srv/on the dot")),
        ("data_dir", "here", Path.cwd() / "here"),
        ("admin_api_key", KEY, KEY),
        ("database_url", "postgresql://u:p@a,b/x", "postgresql://u:p@a,b/x"),
        ("database_url", "postgres://[::1]:5432,b:6432/x", "postgres://[::1]:5432,b:6432/x"),
        ("database_url", "postgresql:///x?host=/run/postgresql", "postgresql:///x?host=/run/postgresql"),
    ],
)
def test_text_is_read_as_what_it_means(name: str, text: str, value: object) -> None:
    assert getattr(read(**{name: text}), name) == value


@pytest.mark.parametrize(
    ("name", "text", "remedy"),
    [
        ("port", "http", "use a whole number from 0 to 65535"),
        ("port", "65536", "use a whole number from 0 to 65535"),
        ("port", "-1", "use a whole number from 0 to 65535"),
        ("port", "80.0", "use a whole number from 0 to 65535"),
        ("port", "9" * 5000, "use a whole number from 0 to 65535"),
        ("concurrency", "0", "use a whole number from 1 to 10000"),
        ("retention_days", "forever", "use a whole number from 1 to 36500"),
        ("lease_seconds", "long", "use a number from 1 to 86400"),
        ("lease_seconds", "nan", "use a number from 1 to 86400"),
        ("lease_seconds", "inf", "use a number from 1 to 86400"),
        (
            "environment",
            "a name of more than 24 characters",
            "use a word of at most 24 characters, such as staging",
        ),
        ("lookahead_ms", "99", "use a number from 100 to 60000"),
        ("horizon_seconds", "1", "use a number from 60 to 2678400"),
        ("worker_processes", "0", "use a number from 1 to 256, or a range such as 1..8"),
        ("worker_processes", "8..1", "use a number from 1 to 256, or a range such as 1..8"),
        ("worker_processes", "many", "use a number from 1 to 256, or a range such as 1..8"),
        ("worker_processes", "..8", "use a number from 1 to 256, or a range such as 1..8"),
        ("roles", "api,wroker", "use one or more of api, materializer, worker"),
        ("roles", ",", "use one or more of api, materializer, worker"),
        ("allow_shell", "perhaps", "use true or false"),
        ("admin_api_key", "short", "use 32 or more ASCII characters without spaces"),
        ("admin_api_key", "k" * 20 + " " + "k" * 20, "use 32 or more ASCII characters without spaces"),
        ("admin_api_key", "schlüssel" * 5, "use 32 or more ASCII characters without spaces"),
        ("database_url", "garbage", "use a DSN such as postgresql://user:password@host:5432/database"),
        ("database_url", "mysql://h/x", "use a DSN such as postgresql://user:password@host:5432/database"),
        (
            "database_url",
            "postgresql://h:port/x",
            "use a DSN such as postgresql://user:password@host:5432/database",
        ),
        (
            "migrate_database_url",
            "postgresql://[::1/x",
            "use a DSN such as postgresql://user:password@host:5432/database",
        ),
        ("data_dir", "~nobody-of-this-name/data", "use a folder's path"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_name_and_the_remedy(
    name: str, text: str, remedy: str
) -> None:
    with pytest.raises(InvalidSetting) as refusal:
        read(**{name: text})

    assert str(refusal.value).startswith(variable(name))
    assert str(refusal.value).endswith(remedy)


def test_a_lease_that_one_renewal_that_hangs_would_lose_is_refused_with_the_sum() -> None:
    with pytest.raises(InvalidSetting) as refusal:
        read(lease_seconds="2")

    assert str(refusal.value) == (
        "ONTHEDOT_LEASE_SECONDS=2 cannot be used: one renewal that hangs would lose it: 0.67 s until it is due to be "
        "renewed + 0.33 s until that is seen + 1.00 s for a renewal that hangs + 0.22 s until the next one + 0.10 s "
        "for that one = 2.32 s; use 3 or more"
    )


def test_a_lookahead_shorter_than_a_worker_looks_is_refused_with_the_sum() -> None:
    with pytest.raises(InvalidSetting) as refusal:
        read(lookahead_ms="1000")

    assert str(refusal.value) == (
        "ONTHEDOT_LOOKAHEAD_MS=1000 cannot be used: what falls due between two looks would start late: 0.99 s "
        "between two looks of an idle worker + 0.25 s for a look that it leaves out + 0.05 s to arm ahead + 0.10 s "
        "for the claim = 1.39 s; use 1400 or more"
    )


@given(lease_seconds=st.floats(3, 86_400), lookahead_ms=st.floats(1400, 60_000))
def test_what_the_refusals_advise_can_be_used(lease_seconds: float, lookahead_ms: float) -> None:
    settings = read(lease_seconds=str(lease_seconds), lookahead_ms=str(lookahead_ms))

    assert (settings.lease_seconds, settings.lookahead_ms) == (lease_seconds, lookahead_ms)


def test_secrets_are_neither_shown_nor_named_in_errors() -> None:
    settings = read(
        admin_api_key=KEY,
        database_url="postgresql://u:hunter2@h/x",
        migrate_database_url="postgresql://o:hunter2@h/x",
    )

    assert KEY not in repr(settings)
    assert "hunter2" not in repr(settings)
    with pytest.raises(InvalidSetting) as refusal:
        read(admin_api_key="hunter2")
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize(
    "text", ["127.0.0.1:8080", "ftp://h", "http://", "http://[::1", "http://h/?a=b", "h"]
)
def test_a_client_is_told_what_an_address_looks_like(text: str) -> None:
    with pytest.raises(
        InvalidSetting, match=r"^ONTHEDOT_URL=.* use an address such as http://127\.0\.0\.1:8080$"
    ):
        ClientSettings.from_env({"ONTHEDOT_URL": text})


def test_a_client_reads_its_own_settings() -> None:
    settings = ClientSettings.from_env({"ONTHEDOT_URL": "https://h/x/"}, flags={"token_file": "/k"})

    assert (settings.url, settings.token_file) == ("https://h/x", Path("/k"))
    assert ClientSettings.from_env({}) == ClientSettings()


def test_flags_win_over_the_environment() -> None:
    settings = Settings.from_env({"ONTHEDOT_PORT": "9000", "ONTHEDOT_HOST": "::1"}, flags={"port": "0"})

    assert (settings.port, settings.host) == (0, "::1")


WORDS = st.lists(st.sampled_from(["bulk", "night-shift", "a.b_c", "9"]), max_size=4).map(tuple)
SETTINGS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "database_url": st.just("postgresql://user:pa%20ss@host,other:5433/x?sslmode=require"),
        "data_dir": st.sampled_from([Path("/srv/a b"), Path("/x%y"), Path("/ö")]),
        "port": st.integers(0, 65535),
        "roles": st.sampled_from([("api",), ("worker", "api"), ("api", "materializer", "worker")]),
        "worker_processes": st.sampled_from([(1, 1), (1, 8), (256, 256)]),
        "queues": WORDS,
        "task_modules": WORDS,
        "admin_api_key": st.just(KEY),
        "allow_shell": st.booleans(),
        "lease_seconds": st.floats(3, 86_400),
        "grace_seconds": st.floats(0, 86_400),
        "retention_days": st.integers(1, 36_500),
    },
)


@given(values=SETTINGS)
def test_a_started_process_reads_the_same_settings(values: dict[str, Any]) -> None:
    settings = Settings(**values)

    assert Settings.from_env(settings.to_env()) == settings


def test_a_child_gets_the_settings_the_rest_of_the_environment_and_its_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ONTHEDOT_PORT", "1")
    monkeypatch.setenv("ONTHEDOT_DATABASE_URL", "postgresql://stale")
    monkeypatch.setenv("LANG_OF_TESTS", "de")

    environment = child_environment(Settings(port=9000), supervisor_fd=7)

    assert Settings.from_env(environment) == Settings(port=9000)
    assert environment["LANG_OF_TESTS"] == "de"
    assert environment[SUPERVISOR_FD] == "7"
    monkeypatch.setenv(SUPERVISOR_FD, "7")
    assert take_supervisor_fd() == 7
    assert take_supervisor_fd() is None


def test_misspelt_variables_are_named() -> None:
    environ = {
        "ONTHEDOT_PROT": "1",
        "ONTHEDOT_PORT": "1",
        "ONTHEDOT_URL": "x",
        SUPERVISOR_FD: "3",
        "PROT": "1",
    }

    assert misspelt_variables(environ) == ["ONTHEDOT_PROT"]
