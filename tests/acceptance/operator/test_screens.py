"""What an operator sees of a real task, in terminals of two sizes."""

from __future__ import annotations

import os
import re
import sys
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.many_targets import ManyTargets
from tests.support.tasks.processes import TaskProcess, task_process
from tests.support.terminal import Terminal, needs_tmux, terminal

pytestmark = [pytest.mark.slow, needs_tmux]

SIZES = [(80, 24), (200, 50)]


@dataclass
class Operator:
    """Somebody at a terminal of this size, who has a task."""

    estate: ManyTargets
    task: TaskProcess
    size: tuple[int, int]
    folder: Path

    def at(self, *arguments: str) -> AbstractContextManager[Terminal]:
        """The terminal in which a command runs."""
        command = [sys.executable, "-m", "cli", *arguments]
        return terminal(command, {**os.environ, **self.task.env}, self.size, self.folder)

    def reads(self, *arguments: str) -> list[str]:
        """All that a command shows, to its end."""
        with self.at(*arguments) as opened:
            opened.until_end()
            shown = opened.all
        if folder := os.environ.get("REPLICATOR_TEST_SCREENS"):
            said = "-".join(argument.rpartition("/")[2] for argument in arguments)
            name = f"{said}-{self.size[0]}-{len(self.estate.tables)}"
            Path(folder, name).write_text("\n".join(shown))
        assert max(map(len, shown)) <= self.size[0]
        return shown


def words(shown: list[str]) -> str:
    """All that was shown, as one line without the frames of panels."""
    return " ".join(re.sub("[│╭╮╰╯─]", " ", " ".join(shown)).split())


@pytest.mark.parametrize("count", [2, 30])
def test_a_fault_a_lock_and_many_targets(
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
    count: int,
) -> None:
    name = database_name
    tables = [f"customer_orders_{number}" for number in range(count)]
    estate = ManyTargets(
        {"shop-eu-01": mariadb_source, "shop-eu-02": mariadb_source_full},
        target_server,
        name,
        tmp_path,
        tables=tables,
        mode="pessimistic",
    )
    with task_process(estate.file, tmp_path) as task:
        task.until_state(name, "running")
        for source in estate.sources:
            estate.do(
                source, *(f"INSERT INTO {t} VALUES ({len(source)}{source[-1]}, 1)" for t in tables)
            )
        estate.do("shop-eu-01", f"ALTER TABLE {tables[1]} ADD COLUMN delivered_at DATETIME(6)")
        estate.until_equal(task, tables[0])
        estate.do("shop-eu-01", f"INSERT INTO {tables[0]} VALUES (7, 1)")
        estate.do("shop-eu-02", f"INSERT INTO {tables[0]} VALUES (7, 2)")
        estate.until_blocked(task, estate.shown(tables[0]))
        task.until(lambda: locked(task, name), "a lock")
        for size in SIZES:
            look(Operator(estate, task, size, tmp_path))


def locked(task: TaskProcess, name: str) -> bool:
    status = task.status(name)
    return status is not None and bool(status.locks)


def look(operator: Operator) -> None:
    """Every screen tells what needs the operator first, and no word or figure is broken."""
    estate = operator.estate
    name, (blocked, locked, *others) = estate.name, map(estate.shown, estate.tables)
    if others:
        # Of very many targets the first look has those that need somebody, and a summary.
        first = words(operator.reads("status", name))
        assert all(f" {target} " in first for target in (blocked, locked))
        assert "targets 30, " in first
        assert f"all targets and sources: replicator status {name} --all" in first
        assert not any(f" {target} " in first for target in others)
    status = words(operator.reads("status", name, "--all"))
    fault = f"target {blocked} is blocked"
    lock = f"lock {locked}:1"
    places = [status.index(text) for text in (name, fault, "remedies", lock, "source state")]
    assert places == sorted(places)
    assert all(f" {target} " in status for target in (blocked, locked, *others))
    watch(operator, fault, lock)
    locks = words(operator.reads("show-ddl-locks", name))
    assert f"replicator unlock-ddl-lock {name} {locked}:1" in locks.replace("- ", "-")
    listed = operator.reads("status")
    [row] = [line for line in listed if line.startswith(f" {name} ")]
    assert "blocked (1 part)" in row
    assert f"{name}: " in words(listed)
    checked = words(operator.reads("check", str(estate.file)))
    assert "failed" in checked


def watch(operator: Operator, fault: str, lock: str) -> None:
    """`status --watch` is one screen that goes on, and keys open what it is about."""
    estate, keys = operator.estate, "q quit"
    with operator.at("status", estate.name, "--watch") as opened:
        rows = opened.until(fault, lock, keys).splitlines()
        assert rows[0].startswith(f"task {estate.name}  running, 1 blocked")
        assert fault in "\n".join(rows[:3])
        opened.press("l")
        opened.until("lock 1 of 1", f"{lock}  waiting", "shop-eu-02: missing", "esc back")
        opened.press("Escape")
        opened.until(fault, keys)
        opened.press("t")
        opened.until(f"targets {len(estate.tables)} of task", f"▸ {fault}")
        opened.press("Down", "Enter")
        opened.until(f"target 2 of {len(estate.tables)}", f"{lock}  waiting", "overwritten")
        opened.press("s")
        opened.until("▸ shop-eu-01  reading")
        opened.press("Enter")
        opened.until("source 1 of 2  shop-eu-01", "saved up to")
        opened.press("Down")
        opened.until("source 2 of 2  shop-eu-02", lock)
        assert not opened.gone, "it is one screen"
        opened.press("q")
        assert opened.until_end() == 0
