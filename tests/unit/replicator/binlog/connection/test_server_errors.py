"""Texts of errors as servers of several versions send them."""

from __future__ import annotations

import pytest

from replicator.binlog.connection.server_errors import StreamRequest, translate
from replicator.binlog.errors import BinlogError, PurgedError, StreamLostError

REQUEST = StreamRequest("db1:3306", "bin.000007:4711", 815)
READ = "the first event 'bin.000007' at {}, the last event read from './bin.000007' at {}"


def told(code: int, message: str, *, logged_in: bool = True) -> Exception:
    return translate(code, message, REQUEST, logged_in=logged_in, available="It has bin.000009.")


@pytest.mark.parametrize(
    "message",
    [
        "Could not find first log file name in binary log index file",
        "Client requested master to start replication from position > file size",
        "Client requested master to start replication from position < 4",
        "Cannot replicate because the source purged required binary logs.",
        "Could not find GTID state requested by slave in any binlog files.",
        "requested to start from GTID 0-1-9, which is not in the master's binlog",
        "Slave has more GTIDs than the master has, using the master's SERVER_UUID.",
        "bogus data in log event; " + READ.format(4711, 4711),
        "log event entry exceeded max_allowed_packet; " + READ.format(4711, 4711),
    ],
)
def test_a_start_that_the_server_does_not_have(message: str) -> None:
    error = told(1236, message)
    assert isinstance(error, PurgedError)
    for part in ("db1:3306", "bin.000007:4711", "It has bin.000009.", message.rstrip(".")):
        assert part in str(error)


@pytest.mark.parametrize(
    ("code", "message", "advice"),
    [
        (1236, "A slave with the same server_uuid/server_id as this slave has connected", "815"),
        (4052, "A slave with the same server_uuid/server_id is already connected", "815"),
        (
            1236,
            "log event entry exceeded max_allowed_packet; " + READ.format(4, 9),
            "SET GLOBAL max_allowed_packet",
        ),
        (1236, "event read from binlog did not pass crc check; " + READ.format(4, 9), "disk"),
        (
            1236,
            "Cannot replicate GTID-transaction when @@GLOBAL.GTID_MODE = OFF, at file ./bin.000007,"
            " position 4711.; " + READ.format(4711, 4711),
            "gtid_mode of",
        ),
        (1045, "Access denied for user", "REPLICATION SLAVE"),
        (1227, "Access denied; you need REPLICATION SLAVE", "REPLICATION SLAVE"),
        (1381, "You are not using binary logging", "--log-bin"),
        (9999, "something new", "something new"),
    ],
)
def test_what_reconnecting_does_not_cure(code: int, message: str, advice: str) -> None:
    error = told(code, message)
    assert isinstance(error, BinlogError)
    assert not isinstance(error, PurgedError)
    assert advice in str(error)


def test_a_refused_login_is_about_the_password() -> None:
    assert "password" in str(told(1045, "Access denied for user", logged_in=False))


@pytest.mark.parametrize("code", [0, 1040, 1053, 1927, 2003, 2006, 2013])
def test_what_reconnecting_may_cure(code: int) -> None:
    assert isinstance(told(code, "gone"), StreamLostError)
