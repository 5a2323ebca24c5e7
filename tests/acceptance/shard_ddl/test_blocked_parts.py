"""A fault blocks the target, or the source, that it concerns; all others flow."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from replicator.mysql.names import quote
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.many_targets import ManyTargets
from tests.support.tasks.processes import TaskProcess, task_process

MODES = pytest.mark.parametrize("mode", ["", "pessimistic"], ids=["uncoordinated", "pessimistic"])


@pytest.fixture
def estate_of(
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> Callable[..., ManyTargets]:
    def make(mode: str, *tables: str, **more: Any) -> ManyTargets:
        sources = {"a": mariadb_source, "b": mariadb_source_full}
        return ManyTargets(
            sources, target_server, database_name, tmp_path, tables=tables, mode=mode, **more
        )

    return make


class Life:
    """The process of a task, that can be killed and started again."""

    def __init__(self, estate: ManyTargets) -> None:
        self.estate = estate
        self._stack = ExitStack()
        self.task: TaskProcess

    def start(self, *options: str) -> TaskProcess:
        self._stack.close()
        process = task_process(self.estate.file, self.estate.folder, *options)
        self.task = self._stack.enter_context(process)
        self.task.until_state(self.estate.name, "running")
        return self.task

    def kill(self) -> None:
        self.task.process.send_signal(signal.SIGKILL)
        self.task.process.wait()

    def command(self, *words: str) -> str:
        done = self.task.cli(words[0], self.estate.name, *words[1:])
        assert done.returncode == 0, done.stderr
        return done.stdout

    def type(self, way_out: str) -> None:
        """Type the first command of a remedy."""
        words = shlex.split(way_out.split("`")[1])
        assert words[0] == "replicator"
        done = self.task.cli(*words[1:])
        assert done.returncode == 0, done.stderr

    def end(self) -> None:
        self._stack.close()


@pytest.fixture
def life_of(estate_of: Callable[..., ManyTargets]) -> Iterator[Callable[..., Life]]:
    lives: list[Life] = []

    def make(mode: str, *tables: str, **more: Any) -> Life:
        lives.append(Life(estate_of(mode, *tables, **more)))
        return lives[-1]

    yield make
    for life in lives:
        life.end()


@pytest.mark.parametrize(
    "mode",
    [pytest.param("", id="uncoordinated"), "pessimistic"],
)
@pytest.mark.slow
def test_a_duplicate_key_blocks_its_target_and_no_other(
    life_of: Callable[..., Life], mode: str
) -> None:
    life = life_of(mode, "t0", "t1", "t2")
    estate, task = life.estate, life.start()
    for source, first in (("a", 1), ("b", 100)):
        estate.do(source, *(f"INSERT INTO {t} VALUES ({first}, 1)" for t in estate.tables))
    estate.until_equal(task)
    estate.do("b", "INSERT INTO t0 VALUES (1, 2)")
    t0 = estate.shown("t0")
    part = estate.until_blocked(task, t0)[t0]
    assert part.error is not None
    assert (part.kind, part.error.event) == ("target", "rows.duplicate")
    assert any(f"replicator resume {estate.name} --target {t0}" in way for way in part.remedies)
    for source, first in (("a", 2), ("b", 101)):
        estate.do(source, *(f"INSERT INTO {t} VALUES ({first}, 1)" for t in estate.tables))
    estate.until_equal(task, "t1", "t2")
    life.kill()
    task = life.start()
    estate.do("a", *(f"INSERT INTO {t} (id) VALUES (3)" for t in estate.tables))
    estate.until_equal(task, "t1", "t2")
    estate.until_held(task, t0, "b")
    estate.do("b", "DELETE FROM t0 WHERE id = 1")
    life.command("resume", "--target", t0)
    estate.until_equal(task)
    estate.until_blocked(task)
    assert {"target.blocked", "target.resumed", "rows.duplicate"} <= {
        event["event"] for event in task.events()
    }


@pytest.mark.slow
def test_parts_are_paused_and_go_on_as_the_status_names_them(life_of: Callable[..., Life]) -> None:
    life = life_of("", "t1", "t2", "a.b", "c`d")
    estate, task = life.estate, life.start()
    dotted, quoted, t1 = f"{estate.name}.`a.b`", f"{estate.name}.`c``d`", estate.shown("t1")
    out = life.command("pause", "--target", dotted, "--target", quoted, "--source", "b")
    assert dotted in out
    estate.until_blocked(task, dotted, quoted, "b")
    estate.at_target("INSERT INTO t1 VALUES (90, 5), (91, 5)")
    estate.do("a", "ALTER TABLE t1 ADD UNIQUE u (a)")
    for source, key in (("a", 1), ("b", 2)):
        estate.do(source, f"INSERT INTO t1 VALUES ({key}, {key})")
        estate.do(source, *(f"INSERT INTO {quote(t)} VALUES ({key}, 1)" for t in ("a.b", "c`d")))
    parts = estate.until_blocked(task, dotted, quoted, "b", t1)
    assert [part.error.event for part in parts.values() if part.error] == ["ddl.refused"]
    [way] = [way for way in parts[t1].remedies if "binlog skip" in way]
    skip, resume = way.split("`")[1], way.split("`")[3]
    for command in (skip, resume):
        done = task.cli(*shlex.split(command)[1:])
        assert done.returncode == 0, done.stderr
    estate.until_blocked(task, dotted, quoted, "b")
    refused = task.cli("resume", estate.name, "--target", f"{estate.name}.a.b")
    assert refused.returncode == 1
    assert "no such target" in refused.stderr
    life.command("resume", "--target", dotted)
    estate.until_blocked(task, quoted, "b")
    assert not estate.equal("a.b"), "source b is not read"
    life.command("resume")
    estate.at_target("DELETE FROM t1 WHERE id >= 90")
    estate.until_equal(task)
    estate.until_blocked(task)


@pytest.mark.slow
@MODES
def test_each_kind_of_fault_blocks_its_target_also_behind_kills(
    life_of: Callable[..., Life], mode: str
) -> None:
    faults = {
        "duplicate": "rows.duplicate",
        "refused": "rows.refused",
        "no_plan": "rows.no-plan",
        "missing": "target.missing",
        "ddl": "ddl.refused",
    }
    life = life_of(mode, *faults, "good", columns="(id INT PRIMARY KEY, a INT, v VARCHAR(9))")
    estate, task = life.estate, life.start()

    def change(key: int, *tables: str) -> None:
        for source, number in (("a", key), ("b", key + 1)):
            row = f"(id, a, v) VALUES ({number}, 1, 'v{number}')"
            estate.do(source, *(f"INSERT INTO {table} {row}" for table in tables))

    def told() -> dict[str, str]:
        parts = estate.until_blocked(task, *map(estate.shown, faults))
        return {name: part.error.event for name, part in parts.items() if part.error}

    change(1, *estate.tables)
    estate.until_equal(task)
    estate.at_target(
        "INSERT INTO duplicate VALUES (11, 5, 'own')",
        "ALTER TABLE refused MODIFY v VARCHAR(2)",
        "ALTER TABLE no_plan DROP v",
        "RENAME TABLE missing TO hidden",
        "INSERT INTO ddl VALUES (-1, 5, 'v1')",
    )
    for source in ("a", "b"):
        estate.do(source, "ALTER TABLE ddl ADD UNIQUE u (v)")
    change(11, *estate.tables)
    wanted = {estate.shown(table): event for table, event in faults.items()}
    assert told() == wanted
    for source in ("a", "b"):
        estate.do(source, "ALTER TABLE good ADD w INT")
    change(21, "good")
    estate.until_equal(task, "good")
    life.kill()
    change(31, *estate.tables)
    task = life.start()
    assert told() == wanted
    estate.until_equal(task, "good")
    estate.at_target(
        "DELETE FROM duplicate WHERE id = 11",
        "ALTER TABLE refused MODIFY v VARCHAR(9)",
        "ALTER TABLE no_plan ADD v VARCHAR(9)",
        "UPDATE no_plan SET v = CONCAT('v', id)",
        "RENAME TABLE hidden TO missing",
        "DELETE FROM ddl WHERE id = -1",
    )
    some = [word for table in ("duplicate", "ddl") for word in ("--target", estate.shown(table))]
    life.command("resume", *some)
    estate.until_equal(task, "duplicate", "ddl")
    life.command("resume")
    life.kill()
    task = life.start()
    change(41, *estate.tables)
    estate.until_equal(task)
    estate.until_blocked(task)


@pytest.mark.slow
@MODES
def test_one_of_200_targets_waits_and_the_others_do_not(
    life_of: Callable[..., Life], mode: str
) -> None:
    tables = [f"t{n}" for n in range(200)]
    life = life_of(mode, *tables)
    estate, task = life.estate, life.start()

    def change(first: int) -> None:
        for source, key in (("a", first), ("b", first + 1)):
            estate.do(
                source,
                *(f"INSERT INTO {t} VALUES ({key}, 1)" for t in tables),
                *(f"UPDATE {t} SET a = a + 1" for t in tables),
            )

    change(1)
    estate.until_equal(task)
    estate.do("a", "INSERT INTO t77 VALUES (-1, 1)")
    estate.until_equal(task, "t77")
    estate.do("b", "INSERT INTO t77 VALUES (-1, 2)")
    name = estate.shown("t77")
    estate.until_blocked(task, name)
    others = [table for table in tables if table != "t77"]
    change(11)
    estate.until_equal(task, *others)
    life.kill()
    task = life.start()
    change(21)
    estate.until_equal(task, *others)
    estate.until_blocked(task, name)
    estate.at_target("DELETE FROM t77 WHERE id = -1")
    life.command("resume", "--target", name)
    life.kill()
    task = life.start()
    estate.do("b", "UPDATE t77 SET id = -2 WHERE id = -1")
    changed = "SELECT COUNT(*) FROM t77 WHERE id = -2"
    at_target = partial(estate.target.execute, changed, database=estate.name)
    task.until(lambda: at_target()[0][0] == 1, "the row of b")
    [row] = estate.sources["a"].execute("SELECT * FROM t77 WHERE id = -1", database=estate.name)
    # It is there already where changes of both shards came in one batch.
    estate.at_target(f"REPLACE INTO t77 VALUES ({row[0]}, {row[1]})")
    change(31)
    estate.until_equal(task)
    estate.until_blocked(task)


@pytest.mark.remedy("target.changed-by-others", "resume", "reload")
@pytest.mark.slow
def test_a_trigger_that_somebody_adds_blocks_its_target_once_the_task_looks_again(
    life_of: Callable[..., Life],
) -> None:
    life = life_of("", "t0", "t1")
    estate, task = life.estate, life.start()
    t0, schema = estate.shown("t0"), estate.shown("t0").partition(".")[0]
    trigger = f"CREATE TRIGGER {schema}.fires BEFORE INSERT ON {t0} FOR EACH ROW SET @x = 1"
    for key in (1, 2):
        estate.target.execute(trigger)
        life.command("pause")
        life.command("resume")
        part = estate.until_blocked(task, t0)[t0]
        assert part.error is not None
        assert part.error.event == "target.changed-by-others"
        estate.do("a", *(f"INSERT INTO {t} VALUES ({key}, 1)" for t in estate.tables))
        estate.until_equal(task, "t1")
        if key == 1:
            estate.target.execute(part.error.remedies[0])
            life.command("resume")
            estate.until_equal(task)
    with estate.file.open("a") as file:
        file.write("ignore-checking-items: [target_triggers]\n")
    done = task.cli("reload", str(estate.file))
    assert done.returncode == 0, done.stderr
    estate.until_equal(task)
