"""Faults of a target that end when it is copied again: its rows are those of the shards then."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from replicator.sandbox.mariadb import MariaDBServer
from tests.conftest import started
from tests.support.tasks.long_task import LongTask
from tests.support.tasks.shards import Shards

NAME = "recopied"
T = f"{NAME}.t"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LongTask]:
    with started(MariaDBServer()) as source, started(MariaDBServer()) as target:
        shards = Shards([source], target, NAME)
        task = LongTask(shards, tmp_path_factory.mktemp("r"))
        task.values["task-mode"] = "all"
        for instance in task.values["mysql-instances"]:
            del instance["meta"]
        yield task
        task.end()


@pytest.fixture
def running(life: LongTask) -> LongTask:
    def copied() -> bool:
        status = life.task.status(NAME)
        return status is not None and status.copy is not None and status.copy.state == "finished"

    life.task.until(copied, "copied")
    life.shards.change(rows=60)
    life.assert_equal()
    return life


def until_equal(running: LongTask) -> None:
    """Wait for the copy in the background, too, which no position shows."""

    def equal() -> bool:
        with suppress(AssertionError):
            running.shards.assert_equal()
            return True
        return False

    running.task.until(equal, "equal")


def copy_again(running: LongTask, fault: Any) -> None:
    [command] = {
        part.split("`")[0]
        for way in fault.remedies
        for part in way.split("`replicator ")
        if part.startswith("recopy")
    }
    words = command.replace("TASK", NAME).split()
    assert words == ["recopy", NAME, "--target", T, "--truncate"]
    answer = running.task.cli(*words)
    assert answer.returncode == 0, answer.stderr

    until_free(running)
    until_equal(running)


def until_free(running: LongTask) -> None:
    def free() -> bool:
        status = running.task.status(NAME)
        return status is not None and status.state == "running" and not status.blocked

    running.task.until(free, "following everything again")


@pytest.mark.remedy("rows.duplicate", "recopy")
@pytest.mark.parametrize("alone", [False, True])
def test_a_row_of_two_shards(running: LongTask, alone: bool) -> None:
    """Also when the target is the only one that goes on, so that the task pauses."""
    [source] = running.shards.servers
    if alone:
        bag = ("--target", f"{NAME}.bag")
        assert running.task.cli("pause", NAME, *bag).returncode == 0
    source.execute(f"INSERT INTO {NAME}.t1 VALUES (77, 'one', 1)")
    source.execute(f"INSERT INTO {NAME}.t2 VALUES (77, 'other', 1)")
    fault = running.fault()
    assert fault.event == "rows.duplicate"
    assert not any("safe-mode" in way for way in fault.remedies)
    source.execute(f"DELETE FROM {NAME}.t1 WHERE id = 77")
    if alone:
        running.task.until_state(NAME, "paused")
        # The task goes on with the target alone, then with the other.
        answer = running.task.cli("recopy", NAME, "--target", T, "--truncate")
        assert answer.returncode == 0, answer.stderr
        running.task.until_state(NAME, "running")
        assert running.task.cli("resume", NAME).returncode == 0
        until_equal(running)
    else:
        copy_again(running, fault)
    source.execute(f"DELETE FROM {NAME}.t2 WHERE id = 77")
    until_equal(running)


def test_a_target_that_is_not_emptied(running: LongTask) -> None:
    """It gets the rows of its shards, and is then as strict as before."""
    [source] = running.shards.servers
    target, readers = running.shards.target, f"SELECT COUNT(*) FROM {T} WHERE name = 'kept'"
    rows = ",".join(f"({n}, 'kept', 1)" for n in range(700_000, 700_300))
    source.execute(f"INSERT INTO {NAME}.t1 (id, name, n) VALUES {rows}")
    until_equal(running)
    for number in (1, 2):
        source.execute(f"INSERT INTO {NAME}.t{number} (id, name, n) VALUES (81, 'two', 1)")
    assert running.fault().event == "rows.duplicate"
    source.execute(f"DELETE FROM {NAME}.t1 WHERE id = 81")
    target.execute(
        f"UPDATE {T} SET n = -5 WHERE id % 7 = 3",
        f"DELETE FROM {T} WHERE id % 7 = 4 AND name <> 'kept'",
        f"INSERT INTO {T} (id, name, n) VALUES (82, 'nobody has it', 1)",
    )
    done = running.task.cli("recopy", NAME, "--target", T)
    assert done.returncode == 0, done.stderr
    assert f"reconciles {T}" in done.stdout
    until_free(running)

    def is_strict() -> bool:
        """Whether a run has begun after the end of the reconciliation."""
        assert target.execute(readers) == ((300,),)
        events = running.task.events()
        ends = [at for at, e in enumerate(events) if e["event"] == "reconcile.finished"]
        return bool(ends) and any(
            e["event"] == "task.step" and e["step"] == "sources" for e in events[ends[-1] :]
        )

    running.task.until(is_strict, "the end of safe mode")
    until_free(running)
    until_equal(running)
    for number in (1, 2):
        source.execute(f"INSERT INTO {NAME}.t{number} (id, name, n) VALUES (83, 'two', 1)")
    fault = running.fault()
    assert fault.event == "rows.duplicate"
    source.execute(f"DELETE FROM {NAME}.t1 WHERE id = 83")
    copy_again(running, fault)


@pytest.mark.remedy("rows.no-plan", "recopy")
def test_a_target_that_lacks_a_column(running: LongTask) -> None:
    [source] = running.shards.servers
    target = running.shards.target
    source.execute(*(f"ALTER TABLE {NAME}.t{n} ADD w INT DEFAULT 1 AFTER name" for n in (1, 2)))
    until_equal(running)
    assert running.task.cli("pause", NAME).returncode == 0
    running.task.until_state(NAME, "paused")
    target.execute(f"ALTER TABLE {T} DROP w")
    running.resume()
    source.execute(f"UPDATE {NAME}.t2 SET n = n + 1")
    fault = running.fault()
    assert fault.event == "rows.no-plan"
    target.execute(f"ALTER TABLE {T} ADD w INT AFTER name")
    copy_again(running, fault)
    source.execute(*(f"ALTER TABLE {NAME}.t{n} DROP w" for n in (1, 2)))
    until_equal(running)


@pytest.mark.remedy("target.missing", "recopy")
def test_a_target_that_was_dropped(running: LongTask) -> None:
    [source] = running.shards.servers
    target = running.shards.target
    [(_, statement)] = target.execute(f"SHOW CREATE TABLE {T}")
    target.execute(f"DROP TABLE {T}")
    assert running.task.cli("pause", NAME).returncode == 0
    running.task.until_state(NAME, "paused")
    running.resume()
    source.execute(f"UPDATE {NAME}.t1 SET n = n + 1")
    fault = running.fault()
    assert fault.event == "target.missing"
    target.execute(f"USE {NAME}", statement)
    copy_again(running, fault)
