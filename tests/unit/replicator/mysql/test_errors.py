"""Error numbers bear the servers' own names, and say whether a server is away."""

from __future__ import annotations

import socket

import pymysql.err
import pytest
from pymysql.constants import CR, ER

from replicator.mysql.connection import asyncio_connection
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseAddress
from replicator.mysql.errors import (
    DatabaseUnavailableError,
    ErrorCode,
    error_code,
    is_about_statement,
    is_contention,
    is_unavailable,
)
from replicator.mysql.names import TableName, quote

OF_THE_MOMENT = (
    ER.LOCK_WAIT_TIMEOUT,
    ER.LOCK_DEADLOCK,
    ER.QUERY_INTERRUPTED,
    ER.ACCESS_DENIED_ERROR,
)
KNOWN_TO_THE_DRIVER = {f"ER_{name}": value for name, value in vars(ER).items()} | vars(CR)


@pytest.mark.parametrize("code", [*OF_THE_MOMENT, ER.DUP_FIELDNAME, ER.PARSE_ERROR])
def test_some_errors_are_not_about_the_statement(code: int) -> None:
    error = pymysql.err.OperationalError(code, "")
    assert is_about_statement(error) == (code not in OF_THE_MOMENT)


@pytest.mark.parametrize("code", ErrorCode)
def test_a_name_means_the_number_that_it_means_to_the_driver(code: ErrorCode) -> None:
    assert KNOWN_TO_THE_DRIVER.get(code.name, code.value) == code.value


@pytest.mark.parametrize(
    ("error", "away", "contended"),
    [
        (pymysql.err.OperationalError(1040, "Too many connections"), True, False),
        (pymysql.err.OperationalError(2013, "Lost connection"), True, False),
        (pymysql.err.OperationalError(9007, "Write conflict"), True, False),
        (pymysql.err.InterfaceError(0, ""), True, False),
        (ConnectionResetError(), True, False),
        (
            pymysql.err.OperationalError(1290, "… running with the --read-only option …"),
            True,
            False,
        ),
        (pymysql.err.OperationalError(1290, "… --super-read-only option …"), True, False),
        (pymysql.err.OperationalError(1290, "… the --secure-file-priv option …"), False, False),
        (pymysql.err.OperationalError(1836, "Running in read-only mode"), True, False),
        (pymysql.err.OperationalError(1792, "… in a READ ONLY transaction"), True, False),
        (
            pymysql.err.OperationalError(3100, "… hook 'after_begin'."),
            True,
            False,
        ),
        (pymysql.err.OperationalError(3100, "… hook 'before_commit'."), False, False),
        (pymysql.err.OperationalError(1021, "Disk full (…)"), True, False),
        (pymysql.err.OperationalError(1114, "The table 't' is full"), True, False),
        (pymysql.err.OperationalError(3675, "Create table … disk is full"), True, False),
        (pymysql.err.OperationalError(1030, "Got error 28 from storage engine"), True, False),
        (pymysql.err.OperationalError(1030, "Got error 168 from storage engine"), False, False),
        (pymysql.err.OperationalError(1026, 'Error writing file (errno: 28 "No …")'), True, False),
        (pymysql.err.OperationalError(3, "Error writing file (Errcode: 28)"), True, False),
        (
            pymysql.err.OperationalError(1005, 'Can\'t create (errno: 150 "Foreign …")'),
            False,
            False,
        ),
        (pymysql.err.OperationalError(1005, "Can't create table (errno: 28)"), True, False),
        (pymysql.err.OperationalError(1041, "Out of memory …"), True, False),
        (pymysql.err.OperationalError(1080, "Forcing close of thread"), True, False),
        (pymysql.err.OperationalError(1047, "WSREP has not yet prepared node"), True, False),
        (pymysql.err.OperationalError(1047, "Unknown command"), False, False),
        (pymysql.err.OperationalError(1213, "Deadlock found"), False, True),
        (pymysql.err.OperationalError(1205, "Lock wait timeout exceeded"), False, True),
        (pymysql.err.OperationalError(1045, "Access denied"), False, False),
        (pymysql.err.IntegrityError(1062, "Duplicate entry"), False, False),
        (ValueError(1213), False, False),
    ],
)
def test_what_an_error_says_of_the_server(error: Exception, away: bool, contended: bool) -> None:
    assert is_unavailable(error) is away
    assert is_contention(error) is contended


def test_an_error_without_a_number_has_none() -> None:
    assert error_code(pymysql.err.InternalError("Packet sequence number wrong")) == 0
    assert error_code(OSError(2, "No such file or directory")) == 0


@pytest.mark.parametrize(("patience", "step"), [(1, 60), (60, 1)])
async def test_a_server_that_is_silent_at_a_login_is_told_as_such(
    monkeypatch: pytest.MonkeyPatch, patience: int, step: int
) -> None:
    monkeypatch.setattr(asyncio_connection, "CONNECT_TIMEOUT", step)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = DatabaseAddress("127.0.0.1", silent.getsockname()[1], "root")
        with pytest.raises(DatabaseUnavailableError, match="no answer to the login for 1 s"):
            await Connection(address, patience=patience).fetch("SELECT 1")


def test_names_are_quoted_with_their_backticks_doubled() -> None:
    assert TableName("a`b", "c d").quoted == "`a``b`.`c d`"


@pytest.mark.parametrize("name", ["", "a\x00b"])
def test_what_no_server_takes_as_a_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name"):
        quote(name)
    with pytest.raises(ValueError, match="cannot be the name"):
        _ = TableName("db", name).quoted
