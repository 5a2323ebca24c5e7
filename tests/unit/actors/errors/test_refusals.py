"""What becomes of a server's own error."""

from __future__ import annotations

import pymysql.err
import pytest

from actors.errors.faults import FatalError, of_source
from actors.errors.refusals import refusal
from replicator.mysql.connection.asyncio_connection import DatabaseAddress, DatabaseUnavailableError

SERVER = DatabaseAddress("db1", 3306, "merger", "secret")


def fault(code: int, text: str) -> FatalError:
    found = refusal(SERVER, pymysql.err.OperationalError(code, text), source=None)
    assert isinstance(found, FatalError)
    assert found.event == "server.refused"
    assert found.where == "target"
    assert text in found.message
    assert "replicator resume" in found.remedies[0]
    assert "secret" not in str(found)
    return found


@pytest.mark.parametrize("code", [2003, 2013, 1040, 1053, 1927, 3169])
def test_a_server_that_is_away_or_kills_the_connection_is_no_fault(code: int) -> None:
    error = pymysql.err.OperationalError(code, "any text")
    assert isinstance(refusal(SERVER, error, source=None), DatabaseUnavailableError)


def test_a_refused_login_names_user_and_server() -> None:
    found = fault(1045, "Access denied for user")
    assert "merger@db1:3306" in found.message
    assert "password" in found.remedies[0]


def test_a_missing_privilege_is_to_be_granted() -> None:
    assert "grant merger" in fault(1142, "INSERT command denied").remedies[0]


def test_anything_else_is_to_be_mended_at_the_server() -> None:
    assert "fix at the server" in fault(1054, "Unknown column 'x'").remedies[0]


def test_only_the_target_keeps_the_whole_task_from_going_on() -> None:
    error = pymysql.err.OperationalError(1045, "Access denied for user")
    at_target, at_source = refusal(SERVER, error, source=None), refusal(SERVER, error, source="a")
    assert isinstance(at_target, FatalError)
    assert isinstance(at_source, FatalError)
    assert (at_target.scope, at_target.where) == (None, "target")
    assert (at_source.scope, at_source.where) == (of_source("a"), "source a")
