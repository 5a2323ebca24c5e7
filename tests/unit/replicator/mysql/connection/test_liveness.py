"""What a server's list of threads says about a connection on which nothing comes."""

from __future__ import annotations

from typing import Any

import pytest

from replicator.mysql.connection.liveness import QUIET_SECONDS, Thread, thread_of

MINE = Thread(("db1", "3306", "10.11.8-MariaDB"), 7, "10.0.0.9:51000")
ASKED = Thread(MINE.server, 9, "10.0.0.9:51002")

Row = tuple[Any, ...]


@pytest.mark.parametrize(
    ("states", "lost"),
    [
        pytest.param([("10.0.0.9:51000", "Query", 900, "updating")], False, id="at work"),
        pytest.param([("10.0.0.9:51000", "Query", 3, "Waiting for lock")], False, id="waits"),
        pytest.param([("10.0.0.9:51000", "Killed", 30, "rollback")], False, id="rolls back"),
        pytest.param([("10.0.0.9:51000", "Sleep", QUIET_SECONDS, "")], True, id="idle"),
        pytest.param([("10.0.0.9:51000", "Sleep", QUIET_SECONDS - 1, "")], False, id="just idle"),
        pytest.param([("10.0.0.9:51000", "Query", 40, "Writing to net")], True, id="MariaDB sends"),
        pytest.param([("10.0.0.9:51000", "Query", 40, "Sending to client")], True, id="MySQL"),
        pytest.param([(b"10.0.0.9:51000", b"Sleep", b"40", b"")], True, id="idle, as bytes"),
        pytest.param([("10.0.0.9:51000", "Query", None, None)], False, id="nothing is told"),
        pytest.param([], True, id="ended"),
        pytest.param([("10.0.0.8:40000", "Query", 1, "")], True, id="its number is another's"),
    ],
)
def test_what_the_thread_is_doing(states: list[Row], lost: bool) -> None:
    assert MINE.is_lost(ASKED, states) is lost


@pytest.mark.parametrize(
    ("states", "lost"),
    [
        pytest.param([("10.0.0.9:51000", "Sleep", 900, "")], False, id="idle"),
        pytest.param([("10.0.0.9:51000", "Query", 40, "Writing to net")], True, id="sends"),
        pytest.param([], True, id="ended"),
    ],
)
def test_a_statement_that_may_still_be_on_its_way(states: list[Row], lost: bool) -> None:
    assert MINE.is_lost(ASKED, states, on_its_way=True) is lost


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(None, id="a proxy that counts in its own way"),
        pytest.param(Thread(("db2", "3306", "10.11.8-MariaDB"), 3, "x"), id="another server"),
    ],
)
def test_who_says_nothing_about_it(asked: Thread | None) -> None:
    assert not MINE.is_lost(asked, [])
    assert not MINE.is_there(asked, [("10.0.0.9:51000", "Sleep", 99, "")])


def test_only_a_thread_of_ours_is_ended() -> None:
    assert MINE.is_there(ASKED, [("10.0.0.9:51000", "Sleep", 99, "")])
    assert not MINE.is_there(ASKED, [("10.0.0.8:40000", "Query", 1, "")])
    assert not MINE.is_there(ASKED, [])
    assert MINE.kill_sql == "KILL 7"


def test_the_thread_of_a_connection() -> None:
    row = ("db1", 3306, "10.11.8-MariaDB", 7, "10.0.0.9:51000")
    assert thread_of([row]) == MINE
    assert thread_of([tuple(str(value).encode() for value in row)]) == MINE
    assert thread_of([]) is None
