"""Which parts of a task are blocked, what the operator may say of them, and what is left."""

from __future__ import annotations

import re
import shlex

import pytest

from actors.errors.faults import DdlEvent, FatalError, TaskParts, UnreadRows, of_source, of_target
from actors.task.operator.blocked_parts import (
    Block,
    BlockedParts,
    block_of,
    pause_reason,
    resume_command,
)
from actors.task.operator.fault_answers import unread_rows
from replicator.binlog.events.table_map import OptionalMetadata, TableMap
from replicator.binlog.positions.position import BinlogPosition
from replicator.mysql.names import Member, TableName
from replicator.schema.effects.overridden_effects import OverrideAction
from replicator.status import now

X, DOTTED, BASE = TableName("m", "x"), TableName("m", "a.b"), TableName("m.a", "b")
TARGETS = {X, DOTTED, BASE}
SOURCES = ["a", "b"]


def steer(parts: BlockedParts, command: str, *targets: str, sources: tuple[str, ...] = ()) -> None:
    given = {"targets": list(targets), "sources": list(sources)}
    parts.steer(command, given, TARGETS, SOURCES, begun=True)


def test_the_operator_names_parts_as_they_are_shown() -> None:
    parts = BlockedParts()
    steer(parts, "pause", "m.`a.b`", sources=("b",))
    assert parts.blocked == TaskParts(frozenset({DOTTED}), frozenset({"b"}))
    assert not parts.failed
    steer(parts, "resume", "m.`a.b`")
    assert parts.blocked == of_source("b")


@pytest.mark.parametrize(
    ("command", "target", "told"),
    [
        ("pause", "m.a.b", "no such target: m.a.b"),
        ("pause", "x", "m.x"),
        ("resume", "m.x", "not blocked: m.x"),
        ("stop", "m.x", "whole task"),
    ],
)
def test_what_can_not_be_meant_is_told(command: str, target: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        steer(BlockedParts(), command, target)


def test_before_all_sources_have_begun_only_the_whole_task_is_paused() -> None:
    with pytest.raises(ValueError, match="as a whole"):
        BlockedParts().steer("pause", {"targets": ["m.x"]}, TARGETS, SOURCES, begun=False)


def test_something_is_left_while_not_all_targets_and_not_all_sources_are_blocked() -> None:
    parts = BlockedParts()
    parts.add(of_target(X, DOTTED), Block(now()))
    assert parts.leaves(TARGETS, SOURCES)
    parts.add(of_target(BASE), Block(now()))
    assert not parts.leaves(TARGETS, SOURCES)
    parts.release(parts.blocked)
    parts.add(of_source("a"), Block(now()))
    assert parts.leaves((), SOURCES)
    parts.add(of_source("b"), Block(now()))
    assert not parts.leaves(TARGETS, SOURCES)


def test_a_pause_gives_its_reason() -> None:
    parts = BlockedParts()
    fault = block_of(
        "task", "f.yaml", FatalError("rows.refused", "m", "r", where="w", scope=of_target(X))
    )
    whole = block_of("task", "f.yaml", FatalError("lease", "m", "r", where="w"))

    def reason(whole: Block | None, *, left: bool = False) -> str:
        return pause_reason(parts, whole, TARGETS, SOURCES, nothing_left=left)

    assert reason(None) == "the operator has paused the task"
    assert reason(whole) == "the fault lease concerns the whole task"
    parts.add(of_target(X), fault)
    # Other targets go on: it is not for want of these.
    assert reason(None, left=True) == "the operator has paused the task"
    parts.add(of_target(DOTTED, BASE), Block(now()))
    told = reason(fault, left=True)
    assert told.startswith("all targets of the task are blocked: ")
    assert "m.x (rows.refused)" in told
    assert "m.`a.b` (paused by the operator)" in told
    parts.add(of_source("a"), Block(now()))
    parts.add(of_source("b"), Block(now()))
    assert reason(None, left=True).startswith("all sources of the task are blocked: a (paused")


def test_what_is_blocked_already_is_not_blocked_anew() -> None:
    parts = BlockedParts()
    assert parts.add(of_target(X), Block(now()))
    assert not parts.add(of_target(X), Block(now()))
    assert parts.add(of_target(X, BASE), Block(now()))


def test_remedies_name_the_command_that_lets_the_part_go_on() -> None:
    error = FatalError(
        "rows.duplicate",
        "twice",
        "mend it, then `replicator resume`",
        where="m",
        scope=of_target(DOTTED),
    )
    fault = block_of("my orders", "/tasks/my orders.yaml", error).fault
    assert fault is not None
    [way] = fault.remedies
    typed = shlex.split(way.split("mend it, then ")[1].removeprefix("`").rpartition("`")[0])
    assert typed == ["replicator", "resume", "my orders", "--target", "m.`a.b`"]
    assert resume_command("t", None) == "replicator resume t"


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("`replicator stop`, then `replicator run`", ["stop NAME", "run FILE"]),
        ("`replicator run --remove-meta`", ["run FILE --remove-meta"]),
        (
            "`replicator run TASK.yaml --on-changed-rules keep`",
            ["run FILE --on-changed-rules keep"],
        ),
        ("`replicator remove` TASK.yaml, empty the targets", ["remove FILE"]),
        ("`replicator status TASK.yaml --json` shows it", ["status FILE --json"]),
        ("`replicator pause TASK`, `replicator resume TASK`", ["pause NAME", "resume NAME"]),
        ("`replicator binlog skip`", ["binlog skip NAME --source a --binlog-pos f.1:7"]),
        ("`binlog skip` this statement", ["binlog skip NAME --source a --binlog-pos f.1:7"]),
        ("`replicator compare` shows the rows", ["compare FILE"]),
    ],
)
def test_each_command_of_a_remedy_can_be_typed_as_it_is_printed(
    written: str, printed: list[str]
) -> None:
    about = DdlEvent("a", BinlogPosition("f.1", 7), (OverrideAction.SKIP,))
    error = FatalError("ddl.unclear", "unclear", written, where="m", about=about)
    fault = block_of("my orders", "/tasks/my orders.yaml", error).fault
    assert fault is not None
    commands = re.findall("`([^`]*)`", fault.remedies[-1])
    wanted = [
        text.replace("NAME", "'my orders'").replace("FILE", "'/tasks/my orders.yaml'")
        for text in printed
    ]
    assert commands == [f"replicator {text}" for text in wanted]


def test_rows_that_block_the_only_target_and_so_the_task_are_one_cause() -> None:
    optional = OptionalMetadata(names=None, unsigned=None, collations=None, labels=None)
    table_map = TableMap("s", "t", (3,), (0,), (False,), optional)
    rows, others = (
        UnreadRows(Member("a", TableName("s", name)), 7, table_map) for name in ("t1", "t2")
    )
    blocks = [Block(now(), about=rows), Block(now(), about=rows)]
    assert unread_rows(blocks, {}) == rows
    assert unread_rows(blocks, {"source": "a", "table": "s.t1"}) == rows
    assert unread_rows(blocks, {"source": "b"}) is None
    assert unread_rows([*blocks, Block(now(), about=others)], {}) is None
    assert unread_rows([*blocks, Block(now(), about=others)], {"table": "s.t2"}) == others
