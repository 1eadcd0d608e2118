"""Which hosts a DSN names."""

import pytest

from app.db.hosts import Host, hosts_in


@pytest.mark.parametrize(
    ("dsn", "hosts"),
    [
        ("postgresql://u:p@db/onthedot", [Host("db", 5432)]),
        ("postgresql://u:p%40,@db:1/onthedot?sslmode=require", [Host("db", 1)]),
        (
            "postgresql://u@a:1,b,c:3/onthedot?target_session_attrs=read-write",
            [Host("a", 1), Host("b", 5432), Host("c", 3)],
        ),
        ("postgresql://a,b/onthedot?port=7", [Host("a", 7), Host("b", 7)]),
        (
            "postgresql:///onthedot?host=a,/run/postgresql&port=1,2",
            [Host("a", 1), Host("/run/postgresql", 2)],
        ),
        ("postgresql://[::1]:1,[fe80::2]/onthedot", [Host("::1", 1), Host("fe80::2", 5432)]),
        ("postgresql://%2Frun%2Fpostgresql/onthedot", [Host("/run/postgresql", 5432)]),
    ],
)
def test_hosts_are_read_as_libpq_does(dsn: str, hosts: list[Host]) -> None:
    assert list(hosts_in(dsn)) == hosts
