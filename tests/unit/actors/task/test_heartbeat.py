"""What a task logs by the minute, and of locks by the hour."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import structlog

from actors.task.heartbeat import Heartbeat
from replicator.status import (
    CopyStatus,
    LockSource,
    LockStatus,
    SourceStatus,
    TaskStatus,
    WriterStatus,
    now,
)

LOCK = LockStatus(
    "d.t:1",
    "d.t",
    1,
    "ALTER TABLE `d`.`t` ADD c INT",
    "a",
    "waiting",
    now(),
    7,
    (LockSource("a", True), LockSource("b", False, ("s.t2",))),
    None,
    ("replicator unlock-ddl-lock orders d.t:1",),
)
STATUS = TaskStatus(
    "orders",
    "running",
    now(),
    1,
    sources=(
        SourceStatus("a", "reading", lag_seconds=2.5),
        SourceStatus("b", "reading", lag_seconds=0),
    ),
    writer=WriterStatus(rows=1200, queued_bytes=5, checkpoint_age_seconds=3.0),
    locks=(LOCK,),
)


@pytest.fixture
def logged() -> Iterator[list[MutableMapping[str, Any]]]:
    with structlog.testing.capture_logs() as records:
        yield records


def test_a_line_has_what_one_asks_first(logged: list[MutableMapping[str, Any]]) -> None:
    # The lock is as old as this module: an hour after its import, a warning would follow.
    Heartbeat(lambda: STATUS, lambda: LOCK.since or now()).beat()
    [line] = logged
    assert line.pop("rows_per_second") > 0
    assert line == {
        "event": "task.progress",
        "log_level": "info",
        "condition": "waiting for a lock",
        "lag_seconds": 2.5,
        "rows": 1200,
        "queued_bytes": 5,
        "checkpoint_age_seconds": 3.0,
        "locks": 1,
        "blocked": 0,
        "copied": "",
    }


def test_a_copy_tells_how_far_it_is(logged: list[MutableMapping[str, Any]]) -> None:
    Heartbeat(lambda: replace(STATUS, copy=CopyStatus("copying", 4, 1, 500, 900))).beat()
    assert logged[0]["copied"] == "1 of 4 shards, 500 of about 900 rows"


def test_an_open_lock_is_a_warning_once_an_hour(logged: list[MutableMapping[str, Any]]) -> None:
    assert LOCK.since is not None
    minutes = iter(range(0, 181, 10))
    began = LOCK.since
    heart = Heartbeat(lambda: STATUS, lambda: began + timedelta(minutes=next(minutes)))
    for _ in range(19):
        heart.beat()
    told = [record for record in logged if record["event"] == "lock.open-long"]
    assert [record["hours"] for record in told] == [1.0, 2.0, 3.0]
    assert told[0]["missing"] == {"b": ["s.t2"]}
    assert told[0]["remedies"] == ["replicator unlock-ddl-lock orders d.t:1"]
    assert told[0]["log_level"] == "warning"


def test_each_open_statement_of_a_target_is_told(logged: list[MutableMapping[str, Any]]) -> None:
    """Their locks have one id."""
    assert LOCK.since is not None
    later = LOCK.since + timedelta(minutes=70)
    shards = ("a: s.t1", "a: s.t2")
    locks = tuple(replace(LOCK, shard=shard, reason=f"{shard}: why") for shard in shards)
    Heartbeat(lambda: replace(STATUS, locks=locks), lambda: later).beat()
    told = [record["reason"] for record in logged if record["event"] == "lock.open-long"]
    assert told == ["a: s.t1: why", "a: s.t2: why"]


def test_a_lock_that_comes_again_is_told_anew(
    logged: list[MutableMapping[str, Any]],
) -> None:
    statuses = iter([STATUS, replace(STATUS, locks=()), STATUS])
    assert LOCK.since is not None
    later = LOCK.since + timedelta(minutes=70)
    heart = Heartbeat(lambda: next(statuses), lambda: later)
    for _ in range(3):
        heart.beat()
    assert len([record for record in logged if record["event"] == "lock.open-long"]) == 2
