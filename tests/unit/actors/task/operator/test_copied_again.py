"""When a target can be copied anew beside the others, and what is said where it can't."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from actors.task.operator.blocked_parts import recopy_wanted
from replicator.mysql.names import TableName
from replicator.status import (
    BlockedPart,
    CopyStatus,
    Fault,
    LockStatus,
    TargetStatus,
    TaskStatus,
    now,
)
from tests.unit.test_cli import Task, invoke, private_runtime, task

__all__ = ["private_runtime", "task"]

X, Y = TableName("d", "x"), TableName("d", "y")
STATUS = TaskStatus("orders", "running", now(), 1, copy=CopyStatus("finished"))
LOCK = LockStatus("d.x:1", "d.x", 1, "ALTER", "a", "waiting", now())


KNOWN = {X: {"a", "b"}, Y: {"b"}}


def wanted(
    status: TaskStatus, *names: str, mode: str = "all", sources: Sequence[str] = ()
) -> frozenset[TableName]:
    arguments = {"targets": list(names), "sources": list(sources)}
    return recopy_wanted(status, mode, arguments, KNOWN)


def test_the_targets_that_are_named() -> None:
    assert wanted(STATUS, "d.x") == {X}
    assert wanted(replace(STATUS, locks=(LOCK,)), "d.y") == {Y}


def test_the_targets_of_a_source() -> None:
    assert wanted(STATUS, sources=["a"]) == {X}
    assert wanted(STATUS, sources=["b"]) == {X, Y}
    assert wanted(STATUS, "d.y", sources=["a"]) == {X, Y}
    with pytest.raises(ValueError, match="no such source: c"):
        wanted(STATUS, sources=["c"])
    with pytest.raises(ValueError, match=r"a schema change of d\.x waits"):
        wanted(replace(STATUS, locks=(LOCK,)), sources=["a"])


def test_no_target_is_emptied_while_a_source_of_its_rows_is_blocked() -> None:
    status = replace(STATUS, blocked=(BlockedPart("source", "a", now()),))
    told = "the source a is blocked, so the targets would lack its rows"
    with pytest.raises(ValueError, match=told):
        wanted(status, "d.x")
    with pytest.raises(ValueError, match=told):
        wanted(status, sources=["a"])
    assert wanted(status, "d.y") == {Y}
    assert wanted(replace(STATUS, blocked=(BlockedPart("target", "d.x", now()),)), "d.x") == {X}


@pytest.mark.parametrize(
    ("change", "mode", "told"),
    [
        ({}, "incremental", "only a task with task-mode all"),
        ({"state": "paused"}, "all", "the task is paused"),
        ({"copy": None}, "all", "when the full copy has finished"),
        ({"copy": CopyStatus("copying")}, "all", "when the full copy has finished"),
        ({"locks": (LOCK,)}, "all", "a schema change of d.x waits"),
        ({"targets": (TargetStatus("d.x", ddl="ALTER"),)}, "all", "a schema change of d.x waits"),
    ],
    ids=["mode", "state", "no copy", "copying", "lock", "statement"],
)
def test_what_is_in_the_way_is_said(change: dict[str, Any], mode: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        wanted(replace(STATUS, **change), "d.x", mode=mode)


def test_a_target_that_is_none_is_said() -> None:
    with pytest.raises(ValueError, match=r"no such target: d\.z"):
        wanted(STATUS, "d.z")


@pytest.mark.parametrize(
    "options", [[], ["--truncate"]], ids=["no target", "no target to be emptied"]
)
def test_the_command_asks_for_what_it_needs(task: Task, options: list[str]) -> None:
    code, _, err = invoke("recopy", "orders", *options)
    assert code == 2
    assert "name the targets" in " ".join(err.split())


def test_a_source_that_begins_again_is_in_no_way() -> None:
    purged = Fault("source.purged", "gone", "source a", (), now())
    status = replace(
        STATUS, state="paused", copy=None, blocked=(BlockedPart("source", "a", now(), purged),)
    )
    arguments = {"targets": [], "sources": ["a"]}
    assert recopy_wanted(status, "all", arguments, KNOWN, begun_again={"a"}) == {X}
    with pytest.raises(ValueError, match="the task is paused"):
        recopy_wanted(status, "all", arguments, KNOWN)
    both = replace(status, blocked=(*status.blocked, BlockedPart("source", "b", now(), purged)))
    with pytest.raises(ValueError, match="or name it, too: --source b"):
        recopy_wanted(both, "all", arguments, KNOWN, begun_again={"a"})
    arguments["sources"] = ["a", "b"]
    assert recopy_wanted(both, "all", arguments, KNOWN, begun_again={"a", "b"}) == {X, Y}
