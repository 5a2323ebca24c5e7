from __future__ import annotations

import ssl
from dataclasses import replace

import pymysql.err
import pytest

from replicator.checks.connecting import explain
from replicator.mysql.connection.asyncio_connection import DatabaseAddress, DatabaseUnavailableError

ADDRESS = DatabaseAddress("db1", 3306, "app", "hidden", session=(("no_such_thing", "1"),))


@pytest.mark.parametrize(
    ("error", "finding", "way_out"),
    [
        (pymysql.err.OperationalError(1045, "Access denied"), "refuses the login", "ALTER USER"),
        (pymysql.err.OperationalError(1130, "Host not allowed"), "this host", "CREATE USER"),
        (pymysql.err.OperationalError(1040, "Too many"), "no connection left", "max_connections"),
        (pymysql.err.OperationalError(1193, "Unknown"), "session setting", "no_such_thing"),
        (ssl.SSLError("bad certificate"), "no TLS connection", "tls_version"),
        (pymysql.err.OperationalError(2059, "ed25519"), "not known here", "ALTER USER 'app'@'%'"),
        (TimeoutError(), "does not answer", "nc -vz"),
        (ConnectionRefusedError(), "nothing listens", "mysql -h db1 -P 3306 -u app -p"),
        (pymysql.err.OperationalError(9999, "odd"), "odd", "mysql -h db1"),
    ],
)
def test_each_kind_of_failure_has_its_way_out(error: Exception, finding: str, way_out: str) -> None:
    lost = DatabaseUnavailableError(f"{ADDRESS}: {error}")
    lost.__cause__ = error
    for raised in (error, lost):
        found = explain(ADDRESS, raised)
        assert finding in found[0]
        assert way_out in found[1]
        assert "hidden" not in "".join(found)


def test_whoever_comes_without_a_password_is_told_so() -> None:
    error = pymysql.err.OperationalError(1045, "Access denied (using password: NO)")
    finding, way_out = explain(replace(ADDRESS, password=""), error)
    assert "no password" in finding
    assert "in quotes" in way_out
