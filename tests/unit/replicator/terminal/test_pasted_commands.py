"""Commands to paste: each in a line of its own, at any width, and in a pipe nothing is broken."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from rich.console import Console, RenderableType

from replicator.checks.result import CheckResult
from replicator.checks.source.estimates import TargetEstimate
from replicator.status import BlockedPart, Fault, HeldAtSource, LockStatus, SourceStatus, TaskStatus
from replicator.terminal.checks import render_checks
from replicator.terminal.consoles import UNWRAPPED, show
from replicator.terminal.remedies import parts_of
from replicator.terminal.status import StatusScreen, render, render_tasks

RESUME = "replicator resume orders --target 'merged.customer orders' --target merged.items_of_them"
GRANT = (
    "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX ON `merged`.*"
    " TO 'merger'@'%';"
)
CREATE = "CREATE TABLE IF NOT EXISTS `a`.`b` (`x` VARCHAR(9) DEFAULT 'it; ''s', `y` INT);"
UNLOCK = "replicator unlock-ddl-lock orders merged.orders:1 --owner shop-eu-02"
MOMENT = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
FAULT = Fault(
    "rows.duplicate",
    "two shards have the same key, and this is a long sentence that goes on for a while " * 2,
    "source shop-eu-01, binlog.000002:4711",
    (f"delete one of the rows, then `{RESUME}`", GRANT),
    MOMENT,
)
STATUS = TaskStatus(
    "orders",
    "running",
    MOMENT,
    17,
    sources=(SourceStatus("shop-eu-01", "following", "binlog.000002:4711"),),
    locks=(
        LockStatus(
            "merged.orders:1",
            "merged.orders",
            1,
            "ALTER TABLE merged.orders ADD COLUMN c INT",
            "",
            "waiting",
            MOMENT,
            remedies=(f"`{UNLOCK}`: the statement of source shop-eu-02 is executed",),
        ),
    ),
    blocked=(
        BlockedPart(
            "target", "merged.orders", MOMENT, FAULT, held=(HeldAtSource("shop-eu-01", 12),)
        ),
    ),
)
RESULTS = [
    CheckResult("version", "a", "passed", "it is supported"),
    CheckResult(
        "local_infile", "target", "warning", "it is off", ("SET GLOBAL local_infile = 1;",)
    ),
    CheckResult("target_privilege", "target", "failed", "may not be written", (GRANT,)),
]


def shown(what: RenderableType, width: int, *, terminal: bool) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=terminal, no_color=True)
    show(what, console)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    for sequence in ("\x1b[1m", "\x1b[2m", "\x1b[0m", "\x1b[1;2m"):
        text = text.replace(sequence, "")
    return text.splitlines()


@pytest.mark.parametrize("width", [20, 40, 80, 200, UNWRAPPED])
def test_a_command_is_a_whole_line_of_its_own_at_any_width(width: int) -> None:
    terminal = width != UNWRAPPED
    for what, commands in (
        (render(STATUS), (RESUME, GRANT, UNLOCK)),
        (render_checks(RESULTS), (GRANT, "SET GLOBAL local_infile = 1;")),
    ):
        lines = [line.strip() for line in shown(what, width, terminal=terminal)]
        for command in commands:
            assert command in lines, (width, command, lines)


def test_nothing_is_broken_or_filled_up_in_a_pipe() -> None:
    for what in (render(STATUS), render_tasks([STATUS]), render_checks(RESULTS, verbose=True)):
        lines = shown(what, UNWRAPPED, terminal=False)
        assert max(map(len, lines)) < 400
        assert not any("│" in line for line in lines)
    lines = shown(render(STATUS), UNWRAPPED, terminal=False)
    assert any(FAULT.message in line for line in lines)


def test_a_command_that_does_not_fit_is_not_cut_on_a_screen_that_is_drawn_anew() -> None:
    console = Console(file=io.StringIO(), width=80, height=50, force_terminal=True, no_color=True)
    lines = [
        "".join(part.text for part in line) for line in console.render_lines(StatusScreen(STATUS))
    ]
    assert max(map(len, lines)) <= 80
    assert any(UNLOCK in line for line in lines), "it fits"
    assert not any("replicator resume" in line for line in lines)
    assert any("replicator status orders" in line for line in lines)


@pytest.mark.parametrize(
    ("way", "parts"),
    [
        ("`replicator resume`", [("`replicator resume`", False)]),
        (f"`{UNLOCK}`: it is executed", [(UNLOCK, True), ("it is executed", False)]),
        (f"mend it, then `{RESUME}`", [("mend it, then", False), (RESUME, True)]),
        (GRANT, [(GRANT, True)]),
        (f"{GRANT} {GRANT}", [(GRANT, True), (GRANT, True)]),
        (CREATE, [(CREATE, True)]),
        (
            "SET GLOBAL local_infile = 1; and the same in the target's my.cnf",
            [
                ("SET GLOBAL local_infile = 1;", True),
                ("and the same in the target's my.cnf", False),
            ],
        ),
        (
            "UPDATE and DELETE need a key; see the page",
            [("UPDATE and DELETE need a key; see the page", False)],
        ),
        ("the target's table `a`.`b` is theirs", [("the target's table `a`.`b` is theirs", False)]),
    ],
)
def test_prose_and_commands(way: str, parts: list[tuple[str, bool]]) -> None:
    assert [(part.text, part.command) for part in parts_of(way)] == parts


def test_failures_come_first_and_checks_that_passed_are_one_line() -> None:
    estimates = [TargetEstimate("merged.t", 12, 2, 3_000_000, 512 << 20)]
    lines = shown(render_checks(RESULTS, (), estimates), 80, terminal=True)
    text = "\n".join(lines)
    order = [
        text.index(word) for word in ("target_privilege", "local_infile", "merged.t", "passed: 1")
    ]
    assert order == sorted(order)
    assert "it is supported" not in text
    assert "estimate" in text
    [row] = [line for line in lines if line.strip().startswith("merged.t")]
    assert row.replace("\u202f", "").split() == ["merged.t", "12", "2", "3000000", "512.0"]
    assert "it is supported" in "\n".join(
        shown(render_checks(RESULTS, (), estimates, verbose=True), 80, terminal=True)
    )


def test_a_remedy_of_many_tables_comes_once() -> None:
    way = "Give the account the right: GRANT SELECT ON `d`.* TO 'r'@'%';"
    results = [
        CheckResult("source_privilege", "a", "failed", f"d.t{n} can't be read", (way,))
        for n in range(50)
    ]
    results.append(CheckResult("source_privilege", "a", "failed", "d.x can't be read", ("wait",)))
    results.append(CheckResult("source_privilege", "b", "failed", "d.t1 can't be read", (way,)))
    text = "\n".join(shown(render_checks(results), 100, terminal=True))
    assert text.count("GRANT SELECT") == 2
    assert all(f"d.t{n} can't be read" in text for n in range(50))
    assert text.index("d.t49") < text.index("GRANT SELECT") < text.index("d.x can't")


def test_held_row_events_are_called_so() -> None:
    lines = "\n".join(shown(render(STATUS), 200, terminal=True))
    assert "shop-eu-01 holds 12 row events" in lines


def test_the_real_output_into_a_pipe_is_not_broken() -> None:
    program = (
        "from replicator.terminal.consoles import out, show, complain\n"
        "from replicator.terminal.remedies import remedies_list\n"
        f"out.print('word ' * 100)\nshow(remedies_list([{'`' + RESUME + '`'!r}]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "30"},
    )
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    assert lines[0] == ("word " * 100).rstrip()
    assert f"    {RESUME}" in lines


def test_a_paused_part_tells_its_command() -> None:
    part = replace(STATUS.blocked[0], error=None, remedies=(f"`{RESUME}`: it is paused",))
    lines = shown(render(replace(STATUS, blocked=(part,))), 40, terminal=True)
    assert f"    {RESUME}" in lines
