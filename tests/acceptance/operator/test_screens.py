"""What an operator sees of a real task, in terminals of two sizes."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.many_targets import ManyTargets
from tests.support.tasks.processes import TaskProcess, task_process
from tests.support.tasks.terminal import Screen, screen_of

pytestmark = pytest.mark.slow

SIZES = [(80, 24), (200, 50)]


class Terminal:
    """The command line of a task in a terminal."""

    def __init__(self, estate: ManyTargets, task: TaskProcess, size: tuple[int, int]) -> None:
        self._estate = estate
        self._env = {**os.environ, **task.env}
        self.size = size

    def shows(self, *arguments: str, until: str = "") -> Screen:
        """What a command shows, to its end or until a text stands on the screen."""
        command = [sys.executable, "-m", "cli", *arguments]
        condition = (lambda screen: until in "\n".join(screen.rows)) if until else None
        screen = screen_of(command, self._env, self.size, condition)
        if folder := os.environ.get("REPLICATOR_TEST_SCREENS"):
            said = "-".join(argument.rpartition("/")[2] for argument in arguments)
            name = f"{said}-{self.size[0]}-{len(self._estate.tables)}"
            Path(folder, name).write_text("\n".join(screen.all))
        assert max(map(len, screen.all)) <= self.size[0]
        return screen


def words(screen: Screen) -> str:
    """All that was shown, as one line without the frames of panels."""
    return " ".join(re.sub("[│╭╮╰╯─]", " ", " ".join(screen.all)).split())


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
            look(Terminal(estate, task, size), estate)


def locked(task: TaskProcess, name: str) -> bool:
    status = task.status(name)
    return status is not None and bool(status.locks)


def look(terminal: Terminal, estate: ManyTargets) -> None:
    """Every screen tells what needs the operator first, and no word or figure is broken."""
    name, (blocked, locked, *others) = estate.name, map(estate.shown, estate.tables)
    status = words(terminal.shows("status", name))
    fault = f"target {blocked} is blocked"
    lock = f"lock {locked}:1"
    places = [status.index(text) for text in (name, fault, "remedies", lock, "source state")]
    assert places == sorted(places)
    assert all(f" {target} " in status for target in (blocked, locked, *others))
    watched = terminal.shows("status", name, "--watch", until=fault)
    assert watched.rows[0].startswith(f"task {name}  running, 1 blocked")
    assert fault in "\n".join(watched.rows[:3])
    assert not watched.gone, "it is one screen"
    locks = words(terminal.shows("show-ddl-locks", name))
    assert f"replicator unlock-ddl-lock {name} {locked}:1" in locks.replace("- ", "-")
    listed = terminal.shows("status")
    [row] = [line for line in listed.all if line.startswith(f" {name} ")]
    assert "blocked (1 part)" in row
    assert f"{name}: " in words(listed)
    checked = words(terminal.shows("check", str(estate.file)))
    assert "failed" in checked
