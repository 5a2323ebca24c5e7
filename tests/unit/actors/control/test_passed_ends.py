"""Whether a task has applied everything up to an end, from its status."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from actors.control.arguments import Until
from actors.control.end_positions import has_passed, remedies_for, verdict
from replicator.binlog.positions.position import BinlogPosition
from replicator.status import (
    BlockedPart,
    CopyStatus,
    Fault,
    HeldAtSource,
    LockSource,
    LockStatus,
    Reconciling,
    SourceStatus,
    TaskStatus,
    UnreadableShard,
    now,
)

END = BinlogPosition("bin.000002", 500)
ENDS: dict[str, BinlogPosition | None] = {"a": END, "b": END}
NOW = Until(now=True)
UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)
CORRECT, RESUME, SKIP = "correct the row", "`replicator resume orders`", "`replicator unlock`"
FAULT = Fault("rows.duplicate", "two shards have the key", "target d.t", (CORRECT,), now())
LOCK = LockStatus(
    "d.t:1",
    "d.t",
    1,
    "ALTER TABLE d.t ADD c INT",
    "a",
    "waiting",
    None,
    sources=(LockSource("a", ready=True), LockSource("b", ready=False, missing=("d.t1", "d.t2"))),
    remedies=(SKIP,),
)


def source(name: str, offset: int = 500, *, read: int = 500) -> SourceStatus:
    """Everything is applied up to an offset; held rows come after it."""
    return SourceStatus(
        name,
        "reading",
        position=f"bin.000002:{read}",
        applied_position=f"bin.000002:{read}",
        complete_position=f"bin.000002:{offset}",
        complete_gtid=f"0-1-{offset}",
    )


def status(*sources: SourceStatus) -> TaskStatus:
    return TaskStatus("orders", "running", now(), 1, sources=sources)


DONE = status(source("a"), source("b"))
HELD = status(source("a", 100), source("b"))


def test_everything_is_applied_when_all_sources_are_at_the_ends() -> None:
    assert verdict(NOW, ENDS, DONE).reached
    late = verdict(NOW, ENDS, HELD)
    assert not late.reached
    assert not late.final
    assert late.reasons == ("a is applied up to bin.000002:100, not yet to bin.000002:500",)


def test_a_source_that_tells_no_end_is_waited_for_and_one_without_a_binlog_is_not() -> None:
    assert verdict(NOW, {"a": END}, DONE).reasons == ("b does not tell the end of its binlog",)
    assert verdict(NOW, {"a": END, "b": None}, DONE).reached


def test_only_the_sources_that_are_named_count() -> None:
    assert verdict(Until(places={"b": END}), ENDS, HELD).reached
    assert verdict(Until(places={"b": "0-1-500"}), ENDS, HELD).reached
    assert not verdict(Until(places={"a": "0-1-101"}), ENDS, HELD).reached


def test_a_time_has_passed_when_all_older_rows_are_applied() -> None:
    sources = [replace(s, complete_until=TEN) for s in DONE.sources]
    assert not verdict(Until(moment=TEN), ENDS, status(*sources)).reached
    assert verdict(Until(moment=TEN.replace(hour=9)), ENDS, status(*sources)).reached
    unknown = status(replace(sources[0], complete_until=None), sources[1])
    assert not verdict(Until(moment=TEN.replace(hour=9)), ENDS, unknown).reached


def test_a_lock_is_final_only_when_everything_else_is_read_and_applied() -> None:
    locked = replace(HELD, locks=(LOCK,))
    found = verdict(NOW, ENDS, locked)
    assert found.final
    assert found.reasons == (
        "the lock d.t:1 is open, 2 shards lack its statement: ALTER TABLE d.t ADD c INT",
    )
    assert found.remedies == (SKIP,)
    reads = status(source("a", 100), source("b", 100, read=200))
    assert not verdict(NOW, ENDS, replace(reads, locks=(LOCK,))).final
    assert not verdict(NOW, {"a": END}, locked).final
    resolving = replace(LOCK, state="resolving")
    assert not verdict(NOW, ENDS, replace(HELD, locks=(resolving,))).final
    wider = replace(LOCK, holds=False)
    assert not verdict(NOW, ENDS, replace(HELD, locks=(wider,))).final
    assert verdict(NOW, ENDS, replace(DONE, locks=(wider,))).reached


def test_a_lock_after_the_end_does_not_matter() -> None:
    assert verdict(NOW, ENDS, replace(DONE, locks=(LOCK,))).reached


def test_a_blocked_part_is_final_if_it_holds_rows() -> None:
    target = BlockedPart(
        "target", "d.t", now(), FAULT, held=(HeldAtSource("a", 3),), remedies=(CORRECT,)
    )
    found = verdict(NOW, ENDS, replace(HELD, blocked=(target,)))
    assert found.final
    assert found.remedies == (CORRECT,)
    assert found.reasons == ("the target d.t is blocked: two shards have the key",)
    assert verdict(NOW, ENDS, replace(DONE, blocked=(target,))).reached
    source_a = BlockedPart("source", "a", now())
    assert verdict(NOW, ENDS, replace(HELD, blocked=(source_a,))).reasons == (
        "the source a is blocked by the operator",
    )


def test_a_paused_task_has_what_it_had_applied() -> None:
    assert verdict(NOW, ENDS, replace(DONE, state="paused")).reached
    found = verdict(NOW, ENDS, replace(HELD, state="paused", reason="the operator paused it"))
    assert found.final
    assert found.reasons == ("the task is paused: the operator paused it",)
    assert found.remedies == (RESUME,)
    assert verdict(NOW, ENDS, replace(HELD, state="paused", error=FAULT)).remedies == (CORRECT,)


def test_the_remedies_of_rows_that_wait_are_those_of_what_they_wait_for() -> None:
    fault = BlockedPart("target", "d.u", now(), FAULT, remedies=(CORRECT,))
    follower = BlockedPart("target", "d.t", now(), waits_for="d.u", remedies=("it goes on",))
    away = BlockedPart("source", "a", now(), remedies=(RESUME,))
    found = replace(HELD, blocked=(fault, follower, away), locks=(LOCK,))
    assert remedies_for(found, (), ("d.t",)) == (SKIP, CORRECT)
    assert remedies_for(found, ("a",), ("d.u",)) == (CORRECT, RESUME)
    assert remedies_for(found, ("b",), ()) == ()


@pytest.mark.parametrize("held", [("d.t",), ()])
def test_a_copy_has_to_end(held: tuple[str, ...]) -> None:
    copying = replace(DONE, copy=CopyStatus("copying", held=held))
    assert verdict(NOW, ENDS, copying).reasons == ("the full copy is copying",)
    assert verdict(NOW, ENDS, replace(DONE, copy=CopyStatus("finished"))).reached
    assert not verdict(NOW, ENDS, TaskStatus("orders", "starting", now(), 1)).reached


def test_values_that_only_the_shards_know_are_part_of_everything() -> None:
    entry = Reconciling("d.t", "comparing", now(), ("c",))
    assert not verdict(NOW, ENDS, replace(DONE, reconciling=(entry,))).reached
    failed = replace(entry, state="failed", reason="refused")
    assert verdict(NOW, ENDS, replace(DONE, reconciling=(failed,))).final


def test_rows_may_be_missing_that_moved_into_a_shard_that_cannot_be_read() -> None:
    shard = UnreadableShard("a", "d.t3", "denied", "", ("d.t",))
    assert verdict(NOW, ENDS, replace(DONE, unreadable=(shard,))).final
    assert verdict(NOW, ENDS, replace(DONE, unreadable=(replace(shard, targets=()),))).reached


def test_a_gtid_of_a_source_without_gtids_is_final() -> None:
    without = status(*(replace(s, complete_gtid="") for s in DONE.sources))
    found = verdict(Until(places={"a": "0-1-1"}), ENDS, without)
    assert found.final
    assert found.reasons == ("a has no GTIDs: name its position as FILE:OFFSET",)


@pytest.mark.parametrize(
    ("place", "gtid", "passed"),
    [
        ("0-1-42", "0-1-42", True),
        ("0-1-42", "0-2-43", True),
        ("0-1-42", "0-1-41,1-1-99", False),
        ("0-1-42,1-2-7", "0-1-42", False),
        ("0-1-42", "", False),
        ("0-1-42", f"{UUID}:1-99", False),
        (f"{UUID}:3-5", f"{UUID}:1-5", True),
        (f"{UUID}:3-6", f"{UUID}:1-5:7", False),
        (f"{UUID}:1", "0-1-42", False),
        (END, "", False),
    ],
    ids=str,
)
def test_gtids_are_compared_as_their_server_does(
    place: BinlogPosition | str, gtid: str, passed: bool
) -> None:
    assert has_passed(place, None, gtid) is passed
