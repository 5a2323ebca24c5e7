"""What must hold before a switch, and what is compared while the sources are read-only."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from replicator.mysql.names import TableName
from replicator.status import (
    BlockedPart,
    LockStatus,
    SourceStatus,
    TaskStatus,
    ValidationStatus,
    VerifiedTarget,
)
from replicator.switch.certificate import TargetPosition
from replicator.switch.numbering import Numbering, following
from replicator.switch.readiness import (
    Rehearsed,
    compared_whole,
    numbering_finding,
    task_findings,
    verification_findings,
    way_back_finding,
)

AT = datetime(2026, 11, 29, 12, 0, 0, tzinfo=UTC)
T, U, V, W = (TableName("shop", name) for name in "tuvw")


def _status(**more: object) -> TaskStatus:
    values = {"sources": (SourceStatus("a", "reading"),), **more}
    return TaskStatus("orders", "running", AT, 1, **values)  # type: ignore[arg-type]


def test_a_running_task_without_open_ends_is_ready() -> None:
    assert not list(task_findings(_status(validation=ValidationStatus(waiting=3))))


@pytest.mark.parametrize(
    ("more", "check"),
    [
        ({"locks": (LockStatus("shop.t:1", "shop.t", 1, "ALTER", "a", "waiting", AT),)}, "locks"),
        ({"blocked": (BlockedPart("target", "shop.t", AT),)}, "blocked"),
        ({"validation": ValidationStatus(errors=1)}, "validation"),
        ({"sources": ()}, "task"),
        ({"sources": (SourceStatus("a", "reading", prepared=("bin.000001:4",)),)}, "prepared"),
    ],
)
def test_open_ends_forbid_a_switch(more: dict[str, object], check: str) -> None:
    [found] = task_findings(_status(**more))
    assert (found.name, found.state) == (check, "failed")
    assert found.remedies


def test_what_the_way_back_lacks_is_known_before_the_switch() -> None:
    assert way_back_finding(TargetPosition("bin.000001", 4), "'w'@'%'").state == "passed"
    denied = TargetPosition(remark="the end of its binlog can't be read: Access denied")
    found = way_back_finding(denied, "'w'@'%'")
    assert found.state == "warning"
    assert "BINLOG MONITOR ON *.* TO 'w'@'%';" in found.remedies[0]
    statements = TargetPosition("bin.000001", 4, remark="binlog_format is MIXED, not ROW")
    assert "binlog_format = ROW" in way_back_finding(statements, "'w'@'%'").remedies[0]
    cascades = way_back_finding(TargetPosition("bin.000001", 4), "'w'@'%'", [T])
    assert (cascades.state, "shop.t" in cascades.finding) == ("warning", True)


def test_a_target_that_was_found_to_differ_forbids_it() -> None:
    status = _status(verified=(VerifiedTarget("shop.t", AT, 9, 1), VerifiedTarget("shop.u", AT, 9)))
    unverified, *others = verification_findings(status, (T, U, V, W))
    assert unverified.state == "passed"
    assert unverified.finding.startswith("2 of 4 targets were not verified")
    assert [found.state for found in others] == ["failed", "passed"]


def test_a_target_continues_after_the_highest_shard() -> None:
    own = Numbering("id", "int(11)", 5)
    shards = {"a: shop.t": 17, "b: shop.t": 12}
    assert following(own, shards) == 17
    found = numbering_finding(T, own, shards)
    assert found is not None
    assert (found.state, found.finding) == (
        "passed",
        "shop.t continues at 17 (now 5; the switch sets it)",
    )


@pytest.mark.parametrize(
    ("kind", "number", "state"),
    [
        ("int(11)", 2_000_000_000, "warning"),
        ("int unsigned", 2_000_000_000, "passed"),
        ("tinyint", 127, "failed"),
        ("bigint", 2**62, "passed"),
        ("double", 2**60, "passed"),
    ],
)
def test_its_type_needs_room(kind: str, number: int, state: str) -> None:
    found = numbering_finding(T, Numbering("id", kind, 1), {"a: shop.t": number})
    assert found is not None
    assert found.state == state


def test_a_target_without_numbers_of_its_own() -> None:
    assert numbering_finding(T, None, {}) is None
    found = numbering_finding(T, None, {"a: shop.t": 3})
    assert found is not None
    assert found.state == "warning"


def test_small_targets_and_those_without_keys_are_compared_again() -> None:
    rehearsed = [Rehearsed(T, 60.0, keyed=True), Rehearsed(U, 0.5, keyed=True)]
    without = Rehearsed(V, 30.0, keyed=False)
    assert compared_whole(rehearsed, skipped=0) == (U,)
    assert compared_whole([*rehearsed, without], skipped=0) == (U, V)
    assert compared_whole(rehearsed, skipped=1) == (T, U)
    assert compared_whole(rehearsed, skipped=0, budget=0.1) == ()
