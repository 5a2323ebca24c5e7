"""Targets that are copied while all others are followed: killed at each step, commands."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from replicator.failpoints import Failpoint
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.many_targets import ManyTargets
from tests.support.tasks.processes import PATIENCE, TaskProcess, killed_at, task_process
from tests.support.tasks.task_files import write_task

MODES = pytest.mark.parametrize("mode", ["", "pessimistic"], ids=["uncoordinated", "pessimistic"])

LIVES = (
    (Failpoint.COPY_BEGUN_AGAIN, 1),
    (Failpoint.CHUNKS_PLANNED, 1),
    (Failpoint.CHUNK_WRITTEN, 2),
    (Failpoint.CHUNK_RECORDED, 2),
    (Failpoint.CHUNK_COMMITTED, 2),
    (Failpoint.BATCH_APPLIED, 1),
    (Failpoint.CHECKPOINT_SAVED, 1),
    (Failpoint.COPY_COMPLETE, 1),
    (Failpoint.COPY_FINISHED, 1),
    (Failpoint.COPY_FINISHED, 1),
)
"""Steps, and how often they are reached before the process dies there: one life after the other."""

ROWS = 300
LARGE = 1000
"""The keys of the second source begin here."""


@pytest.fixture
def estate_of(
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> Callable[..., ManyTargets]:
    def make(mode: str, speed: int = 120) -> ManyTargets:
        columns = {"t0": "(id INT PRIMARY KEY, a INT)", "bag": "(id INT, a INT)"}
        columns |= {"t1": columns["t0"], "t2": columns["t0"]}
        estate = ManyTargets(
            {"a": mariadb_source, "b": mariadb_source_full},
            target_server,
            database_name,
            tmp_path,
            tables=columns,
            mode=mode,
            columns=columns,
        )
        values = yaml.safe_load(estate.file.read_text())
        for instance in values["mysql-instances"]:
            del instance["meta"]
            instance["mydumper-config-name"] = "small"
        values |= {
            "task-mode": "all",
            "mydumpers": {"small": {"rows": 20, "threads": 2}},
            "copy": {"rows-per-second": speed},
            "ignore-checking-items": ["table_schema"],
        }
        write_task(tmp_path, values)
        for number, source in enumerate(("a", "b")):
            rows = ",".join(f"({LARGE * number + key}, {key})" for key in range(1, ROWS))
            estate.do(source, *(f"INSERT INTO {table} VALUES {rows}" for table in ("t0", "bag")))
            estate.do(source, f"INSERT INTO t1 VALUES ({number}, 1)")
        # Neither can be copied so.
        estate.at_target("ALTER TABLE t0 DROP a", "ALTER TABLE bag DROP a")
        return estate

    return make


def left_out(estate: ManyTargets) -> None:
    """Follow all but t0 and bag, which can be copied from then on."""
    with task_process(estate.file, estate.folder) as task:
        estate.until_blocked(task, estate.shown("t0"), estate.shown("bag"))
        estate.until_equal(task, "t1", "t2")
        task.cli("stop", estate.name)
        task.process.wait(PATIENCE)
    estate.at_target("ALTER TABLE t0 ADD a INT", "ALTER TABLE bag ADD a INT")


@contextmanager
def changed(estate: ManyTargets) -> Iterator[threading.Event]:
    """All the time rows of all targets come, change and go.

    They also move from one source to the other until the event is set: where a source is followed
    strictly, one that comes before it has gone is a duplicate.
    """
    over, stay = threading.Event(), threading.Event()

    def write() -> None:
        count = 0
        while not over.wait(0.7):
            count += 1
            for number, source in enumerate(("a", "b")):
                key = LARGE * number + count % ROWS
                estate.do(
                    source,
                    f"INSERT INTO t0 VALUES ({LARGE * (number + 3) + count}, 0)",
                    f"UPDATE t0 SET a = a + 1 WHERE id = {key}",
                    f"DELETE FROM t0 WHERE id = {key + 7}",
                    f"UPDATE bag SET a = a + 1 WHERE id = {key}",
                    f"INSERT INTO bag VALUES ({key}, 0), ({key}, 0)",
                    f"DELETE FROM bag WHERE id = {key + 5} LIMIT 1",
                    f"INSERT INTO t1 VALUES ({LARGE * (number + 3) + count}, 0)",
                    f"UPDATE t1 SET a = a + 1 WHERE id = {number}",
                )
            if not stay.is_set():
                moving = ROWS - 1 - count % ROWS
                estate.do("a", f"DELETE FROM t0 WHERE id = {moving}")
                estate.do("b", f"REPLACE INTO t0 VALUES ({moving}, -1)")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield stay
    finally:
        over.set()
        writer.join()


@pytest.mark.slow
@MODES
def test_killed_at_each_step(estate_of: Callable[..., ManyTargets], mode: str) -> None:
    estate = estate_of(mode)
    left_out(estate)
    with changed(estate) as stay:
        for point, count in LIVES:
            if point is Failpoint.COPY_COMPLETE:
                stay.set()
            with killed_at(point, estate.file, estate.folder, time=count):
                pass
    with task_process(estate.file, estate.folder) as task:
        estate.until_equal(task)
        estate.until_blocked(task)
        task.until(lambda: copy_state(task, estate) == "finished", "the end of the copy")


def copy_state(task: TaskProcess, estate: ManyTargets) -> str:
    status = task.status(estate.name)
    return status.copy.state if status and status.copy else ""


@pytest.mark.slow
def test_what_the_operator_pauses_resumes_and_sees(
    estate_of: Callable[..., ManyTargets],
) -> None:
    # So slow that all commands come while both are copied.
    estate = estate_of("pessimistic", speed=40)
    left_out(estate)
    t0, bag, t2 = map(estate.shown, ("t0", "bag", "t2"))
    with changed(estate) as stay, task_process(estate.file, estate.folder) as task:
        stay.set()

        def held(*names: str) -> bool:
            status = task.status(estate.name)
            if status is None or status.copy is None or status.state != "running":
                return False
            return status.copy.held == tuple(sorted(names)) and status.copy.state == "copying"

        def command(*words: str) -> str:
            done = task.cli(words[0], estate.name, *words[1:])
            assert done.returncode == 0, done.stderr
            return done.stdout

        task.until(lambda: held(t0, bag), "both are copied")
        command("pause", "--target", t0)
        task.until(lambda: held(bag), "one is copied")
        assert estate.until_blocked(task, t0)
        command("pause", "--target", t2)
        command("resume", "--target", t0)
        task.until(lambda: held(t0, bag), "both again")
        shown = command("status")
        assert "held until then" in shown
        assert "writer" in shown
        command("pause", "--source", "b")
        estate.until_blocked(task, t2, "b")
        command("resume", "--target", t2, "--source", "b")
        task.until(lambda: held(t0, bag) or held(t0) or held(bag), "both sources again")
        command("pause")
        task.until_state(estate.name, "paused")
        command("resume")
        task.until(lambda: copy_state(task, estate) == "finished", "the end of the copy")
    with task_process(estate.file, estate.folder) as task:
        estate.until_equal(task)
        estate.until_blocked(task)
        assert not {"rows.duplicate", "copy.duplicate"} & {e["event"] for e in task.events()}
