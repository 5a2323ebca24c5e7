from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from replicator.printable_text import shown_json
from replicator.relay_status import RelayStatus
from replicator.status import (
    BinlogDistance,
    BlockedPart,
    CopyStatus,
    DifferingShard,
    DifferingTarget,
    Fault,
    HeldAtSource,
    LockClaim,
    LockConflict,
    LockSource,
    LockStatus,
    SourceStatus,
    StatusFormatError,
    TargetStatus,
    TaskStatus,
    WriterStatus,
    now,
)
from replicator.terminal.locks import locks_json, render_locks
from replicator.terminal.status import render

FAULT = Fault(
    "target.duplicate_key",
    "two shards carry the key [7]",
    "target d.t, position bin.000001:4",
    ("replicator resume orders", "remove one"),
    now(),
)
FULL = TaskStatus(
    "orders",
    "paused",
    now(),
    4711,
    FAULT,
    (
        SourceStatus(
            "a",
            "reading",
            position="bin.000001:900",
            gtid="0-1-9",
            saved_position="bin.000001:4",
            lag_seconds=1.5,
            rows=12,
            bytes=3_000_000,
            prepared=("bin.000001:70", "bin.000001:90"),
        ),
        SourceStatus("b", "retrying"),
    ),
    (TargetStatus("d.t", 4, 2, 10, 5, 3, 1, 99.5, "ALTER TABLE"),),
    WriterStatus("applying", 3, 12, 4.0, 0.25, 2048, 7.0),
    (
        LockStatus(
            "d.t:3",
            "d.t",
            3,
            "ALTER TABLE `d`.`t` ADD c INT",
            "a",
            "conflict",
            now(),
            4,
            (
                LockSource("a", True, (), "bin.000001:4", BinlogDistance(2, 3_000_000, 1)),
                LockSource("b", False, ("s.t2",)),
            ),
            LockConflict(
                3,
                LockClaim("a", "s.t1", ("ADD c INT",)),
                LockClaim("b", "s.t2", ("ADD c FLOAT", "ADD d INT")),
            ),
            ("replicator unlock-ddl-lock orders d.t:3 --owner b",),
        ),
    ),
    CopyStatus("copying", 4, 1, 5000, 9000, 123_456, 3, 250.0, 16.0, 7, 2, "b is away"),
    (
        BlockedPart(
            "target",
            "d.u",
            now(),
            replace(
                FAULT, event="rows.refused", remedies=("replicator resume orders --target d.u",)
            ),
            held=(HeldAtSource("a", 17, "bin.000001:4", BinlogDistance(2, 3_000_000, 1)),),
            remedies=("replicator resume orders --target d.u",),
        ),
        BlockedPart("target", "d.v", now(), waits_for="d.u", remedies=("it goes on with d.u",)),
        BlockedPart("source", "c", now(), remedies=("replicator resume orders --source c",)),
    ),
)

statuses = st.builds(TaskStatus, since=st.just(now()), pid=st.integers(0, 2**31))


@given(statuses)
def test_json_round_trip(status: TaskStatus) -> None:
    assert TaskStatus.from_dict(json.loads(shown_json(status.to_dict()))) == status
    assert TaskStatus.from_dict(json.loads(json.dumps(status.to_dict()))) == status


def test_the_json_form_is_stable() -> None:
    values = json.loads(shown_json(FULL.to_dict()))
    assert list(values) == [
        "task", "state", "since", "pid", "error", "sources", "targets", "writer",
        "locks", "copy", "blocked", "validation", "trend", "differing", "standby_for",
        "reason", "unreadable", "retired", "reconciling", "rows_corrected", "verified", "started",
        "held",
    ]  # fmt: skip
    assert values["error"]["remedies"] == ["replicator resume orders", "remove one"]
    assert values["since"].endswith("Z")
    assert datetime.fromisoformat(values["since"]) == FULL.since
    assert values["sources"][0]["saved_position"] == "bin.000001:4"
    assert TaskStatus.from_dict(json.loads(shown_json(FULL.to_dict()))) == FULL


def test_fields_of_a_newer_version_are_left_out() -> None:
    values = {**FULL.to_dict(), "mood": "fine"}
    values["targets"][0]["mood"] = "fine"
    assert TaskStatus.from_dict(values) == FULL


@pytest.mark.parametrize(
    "change",
    [
        {"state": "dancing"},
        {"pid": "x"},
        {"pid": True},
        {"since": None},
        {"since": "yesterday"},
        {"targets": {}},
        {"sources": [{"state": "reading"}]},
        {"error": "none"},
        {"writer": {"rows": 1.5}},
        {"copy": {"state": "copying", "rows_per_second": "7"}},
    ],
)
def test_what_is_not_understood_is_an_error(change: dict[str, object]) -> None:
    with pytest.raises(StatusFormatError, match=next(iter(change))):
        TaskStatus.from_dict({**FULL.to_dict(), **change})


def rendered(status: TaskStatus, width: int = 140) -> str:
    out = io.StringIO()
    Console(width=width, file=out).print(render(status))
    return out.getvalue()


def test_the_view_shows_the_copy_instead_of_the_writer_that_waits_for_it() -> None:
    text = rendered(FULL).replace("\N{NARROW NO-BREAK SPACE}", " ")
    for expected in (
        "1 of 4 tables", "5 000 of 9 000 rows", "120.6 KiB", "250 rows/s", "16.0 s left",
        "7 replaced", "2 ignored", "waits: b is away",
    ):  # fmt: skip
        assert expected in text, expected
    assert "batches" not in text


def test_the_view_names_faults_and_remedies() -> None:
    text = rendered(replace(FULL, copy=None))
    for expected in (
        "orders", "paused", "bin.000001:900", "bin.000001:4", "d.t", "two shards carry the key [7]",
        "replicator resume orders", "ALTER TABLE", "applying", "1.5 s", "retrying",
    ):  # fmt: skip
        assert expected in text, expected


def test_the_view_of_a_task_that_has_only_begun() -> None:
    text = rendered(TaskStatus("orders", "starting", now(), 1))
    assert "orders" in text
    assert "starting" in text


def test_the_view_of_a_relay() -> None:
    relay = RelayStatus(
        2, 5_000_000, "bin.000001:4", "bin.000002:7", "bin.000001:70", "locks are open", "no space"
    )
    sources = tuple(replace(source, relay=relay) for source in FULL.sources)
    status = replace(FULL, sources=sources)
    text = " ".join(rendered(status, width=400).split())
    assert "bin.000001:4 to bin.000002:7, needed from bin.000001:70 on" in text
    assert "held by: locks are open; not continued: no space" in text


def test_the_view_of_a_lock() -> None:
    text = rendered(FULL)
    for expected in (
        "d.t:3", "conflict", "owner a", "4 row events held", "source a: ready", "missing s.t2",
        "2 files and 2.9 MiB before the end, 1 older files kept",
        "b, s.t2: ADD c FLOAT; then ADD d INT", "unlock-ddl-lock orders d.t:3 --owner b",
    ):  # fmt: skip
        assert expected in text, expected


def test_the_view_of_an_open_statement() -> None:
    """It says why it is open, and of sources only what is saved, or who lacks the statement."""
    sources = (
        LockSource("a", False, (), "bin.000001:4"),
        LockSource("b", False, ("s.t2",), "bin.000001:9"),
        LockSource("d", True, (), "bin.000001:7"),
    )
    lock = LockStatus(
        "d.t", "d.t", 1, "ALTER", "a", "waiting", now(), 1, sources,
        reason="a: s.t1: it renames b", shard="a: s.t1",
    )  # fmt: skip
    text = rendered(replace(FULL, locks=(lock,)))
    for expected in (
        "1 row event held, those of this shard only", "a: s.t1: it renames b",
        "source a: saved at bin.000001:4", "source b: missing s.t2; saved at bin.000001:9",
    ):  # fmt: skip
        assert expected in text, expected
    for pessimistic in ("item 1", "reading;", "source d"):
        assert pessimistic not in text, pessimistic


def test_locks_by_themselves() -> None:
    differing = DifferingTarget(
        "d.t",
        tuple(DifferingShard("a", shard, ("lacks column c",)) for shard in ("s.t1", "s.t2")),
        ("two defaults",),
    )
    values = json.loads(locks_json("orders", FULL.locks, [differing]))
    assert values["locks"] == json.loads(shown_json(FULL.to_dict()))["locks"]
    [told] = values["differing"]
    assert told["shards"][0] == {
        "source": "a", "member": "s.t1", "differences": ["lacks column c"],
    }  # fmt: skip
    out = io.StringIO()
    Console(width=100, file=out).print(render_locks((), [differing]))
    for expected in ("no open locks", "lacks column c: a: s.t1, a: s.t2", "notice: two defaults"):
        assert expected in out.getvalue()
    assert "lacks column c" in rendered(replace(FULL, differing=(differing,)))
