"""`replicator switch`: the task ends for good, nothing is lost, and it can be aborted before."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from replicator.switch.certificate import SwitchCertificate
from tests.support.tasks.processes import PATIENCE, TaskProcess, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.switching import Application, is_writable, make_writable
from tests.support.tasks.task_files import write_task

pytestmark = pytest.mark.slow

STEPS = (
    "making the checks",
    " checks made of 2 targets and ",
    "waiting until the task validates the rows",
    "comparing all rows of 2 targets",
    "(2 of 2 targets)",
    " sources read-only",
    "waiting until the task has applied ",
    "AUTO_INCREMENT of 1 targets is set",
    "writing the certificate",
)
"""What a switch reports."""


@pytest.fixture
def writable(shards: Shards) -> Iterator[Shards]:
    yield shards
    make_writable(shards.servers)


@pytest.fixture(params=["MariaDB", "MySQL into TiDB"])
def estate(request: pytest.FixtureRequest, database_name: str) -> Iterator[Shards]:
    servers, target = ["mariadb_source", "mariadb_source_full"], "mariadb_target"
    if request.param != "MariaDB":
        servers, target = ["mysql_source"], "tidb_target"
    started = [request.getfixturevalue(name) for name in servers]
    shards = Shards(started, request.getfixturevalue(target), database_name)
    for server, tables in [(shards.target, "t"), *((server, "t1 t2") for server in started)]:
        for table in tables.split():
            server.execute(f"DROP TABLE {database_name}.{table}")
            columns = "(id BIGINT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(2000), n INT)"
            server.execute(f"CREATE TABLE {database_name}.{table} {columns}")
    yield shards
    make_writable(started)


def test_a_switch_under_writes_loses_nothing(estate: Shards, tmp_path: Path) -> None:
    shards, name = estate, estate.database
    file = write_task(tmp_path, shards.task())
    shards.change()
    application = Application(shards.servers, name, ("t1", "t2"), rate=500)
    with task_process(file, tmp_path) as task:
        task.until_state(name, "running")
        with application.writing():
            looked = task.cli("switch", str(file), "--dry-run")
            assert looked.returncode == 0, looked.stdout + looked.stderr
            assert looked.stdout.strip().endswith("the switch can begin.")
            assert all(map(is_writable, shards.servers))
            done = task.cli("switch", str(file), "--freeze", "--json", patience=400)
        assert done.returncode == 0, done.stderr
        assert task.process.wait(PATIENCE) == 0
        values = json.loads(done.stdout)
        rate = application.transactions / application.seconds
        sys.stdout.write(f"{rate:,.0f} transactions/s, frozen for {values['frozen_seconds']} s\n")
        sys.stdout.write(done.stderr)
        steps = [line for line in STEPS if line not in done.stderr]
        assert not steps, done.stderr
        assert application.refused
        shards.assert_equal()
        there = {row for (row,) in shards.target.execute(f"SELECT id FROM {name}.t")}
        assert there >= {row for ids in application.saved.values() for row in ids}
        certificate = SwitchCertificate.from_json(
            (tmp_path / f"{name}.certificate.json").read_text()
        )
        assert {t.table: t.frozen for t in certificate.targets}["bag"]
        assert not any(map(is_writable, shards.servers))
        shards.target.execute(
            f"INSERT INTO {name}.t (name, n) VALUES ('first of the application', 0)"
        )
        [[new]] = shards.target.execute(f"SELECT id FROM {name}.t WHERE name LIKE 'first%'")
        assert new > max(there)
        assert task.cli("run", str(file)).returncode == 2
        refused = task.cli("compare", str(file), "--repair-now")
        assert refused.returncode == 2
        assert "was finished by `replicator switch`" in refused.stderr
        again = task.cli("switch", str(file))
        assert again.returncode == 0
        assert f"task {name} is finished" in again.stdout
        assert task.cli("switch", str(file), "--abort").returncode == 1


def test_an_aborted_switch_changes_nothing(writable: Shards, tmp_path: Path) -> None:
    shards, name = writable, writable.database
    file = write_task(tmp_path, shards.task())
    shards.change()
    with task_process(file, tmp_path) as task:
        task.until_state(name, "running")
        task.until_applied(name, shards.sources)
        shards.target.execute(f"DELETE FROM {name}.t LIMIT 1")
        done = task.cli("switch", str(file), "--freeze", patience=400)
        assert done.returncode == 1
        assert "1 rows missing" in done.stderr
        assert all(map(is_writable, shards.servers))
        assert task.cli("reconcile", name).returncode == 0
        shards.change()
        assert task.cli("wait", name, patience=400).returncode == 0
        late = task.cli("switch", str(file), "--freeze", "--timeout", "1ms", patience=400)
        assert late.returncode == 1
        assert "aborted: the sources were read-only for 0.001 s" in late.stderr
        assert all(map(is_writable, shards.servers))
        _interrupted(task, file)
        shards.change()
        task.until_applied(name, shards.sources)
        shards.assert_equal()


def _interrupted(task: TaskProcess, file: Path) -> None:
    """Without --freeze, the command waits for the operator, until Ctrl-C; others are refused."""
    with subprocess.Popen(
        [sys.executable, "-m", "cli", "switch", str(file)],
        env=dict(task.env),
        stderr=subprocess.PIPE,
        text=True,
    ) as waiting:
        assert waiting.stderr is not None
        for line in waiting.stderr:
            if line.startswith("waiting until these sources are read-only: a, b"):
                for other in ("--freeze", "--abort"):
                    refused = task.cli("switch", str(file), other)
                    assert refused.returncode == 1
                    assert f"is at work (process {waiting.pid}); Ctrl-C" in refused.stderr
                waiting.send_signal(signal.SIGINT)
        assert waiting.wait(PATIENCE) == 1


def test_a_dry_run_lists_what_the_target_lacks(shards: Shards, tmp_path: Path) -> None:
    name = shards.database
    [first, _] = shards.servers
    first.execute(
        f"CREATE TRIGGER {name}.t1_new BEFORE INSERT ON {name}.t1 FOR EACH ROW SET NEW.n = 1",
        f"CREATE EVENT {name}.clean ON SCHEDULE EVERY 1 DAY DO DELETE FROM t1 WHERE n < 0",
        f"CREATE VIEW {name}.totals AS SELECT COUNT(*) AS rows_of_t1 FROM {name}.t1",
        f"CREATE USER IF NOT EXISTS reporter_{name[-6:]}",
        f"GRANT SELECT ON {name}.* TO reporter_{name[-6:]}",
    )
    with task_process(write_task(tmp_path, shards.task()), tmp_path) as task:
        task.until_state(name, "running")
        looked = task.cli("switch", str(tmp_path / f"{name}.yaml"), "--dry-run", "--json")
        assert looked.returncode == 0, looked.stderr
        remedies = " ".join(looked.stdout.split())
        for wanted in (
            f"CREATE TRIGGER `t1_new` BEFORE INSERT ON `{name}`.`t` FOR EACH ROW SET NEW.n = 1",
            "EVENT `clean` ON SCHEDULE EVERY 1 DAY",
            f"VIEW `{name}`.`totals` AS",
            f"GRANT SELECT ON `{name}`.* TO 'reporter_{name[-6:]}'@'%'",
        ):
            assert wanted in remedies
    first.execute(f"DROP EVENT {name}.clean", f"DROP USER reporter_{name[-6:]}")
