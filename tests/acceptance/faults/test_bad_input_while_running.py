"""What goes wrong while a task runs: it pauses with a clear error, and goes on without loss."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pymysql.err
import pytest

from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.conftest import started
from tests.support.tasks.long_task import LongTask
from tests.support.tasks.processes import PATIENCE
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import start_of

# While it runs ----------------------------------------------------------------------------------

NAME = "badinput"


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LongTask]:
    with (
        started(MariaDBServer({"binlog_row_metadata": "NO_LOG"})) as first,
        started(MariaDBServer({"binlog_row_metadata": "FULL"})) as second,
        started(MariaDBServer()) as target,
    ):
        task = LongTask(Shards([first, second], target, NAME), tmp_path_factory.mktemp("b"))
        target.execute("CREATE USER merger@'%' IDENTIFIED BY 'm'", "GRANT ALL ON *.* TO merger@'%'")
        task.values["target-database"] |= {"user": "merger", "password": "m"}
        yield task
        task.end()


@pytest.fixture
def running(life: LongTask) -> LongTask:
    """The task, running, with nothing left to do."""
    life.shards.change()
    life.assert_equal()
    return life


def first_and_target(running: LongTask) -> tuple[DatabaseServer, DatabaseServer]:
    return running.shards.servers[0], running.shards.target


@pytest.mark.slow
def test_the_same_key_in_two_shards(running: LongTask) -> None:
    first, second = running.shards.servers
    first.execute(f"INSERT INTO {NAME}.t1 VALUES (77, 'of a', 1)")
    running.assert_equal()
    second.execute(
        f"INSERT INTO {NAME}.bag (a, b) VALUES (1, 'once'), (1, 'once')",
        f"INSERT INTO {NAME}.t2 VALUES (77, 'of b', 1)",
    )
    running.shards.change()
    fault = running.fault()
    assert fault.event == "rows.duplicate"
    assert "'…' for key" in fault.message
    assert "'77'" not in fault.message
    assert f"{NAME}.t2" in fault.where
    assert f"target {NAME}.t" in fault.where
    assert not any("safe-mode" in way for way in fault.remedies)
    # Nothing has changed: the same again.
    running.resume()
    assert running.fault().event == "rows.duplicate"
    second.execute(f"DELETE FROM {NAME}.t2 WHERE id = 77")
    running.resume()
    running.assert_equal()


@pytest.mark.remedy("target.missing", "resume")
@pytest.mark.slow
def test_the_target_table_goes_away(running: LongTask) -> None:
    _, target = first_and_target(running)
    target.execute(f"RENAME TABLE {NAME}.bag TO {NAME}.away")
    running.shards.change()
    fault = running.fault()
    assert fault.event in ("rows.refused", "target.missing")
    assert f"{NAME}.bag" in fault.message
    running.resume()
    fault = running.fault()
    assert fault.event == "target.missing"
    assert f"{NAME}.bag" in fault.message
    assert f"target {NAME}.bag" in fault.where
    assert f"CREATE TABLE `{NAME}`.`bag` (" in " ".join(fault.remedies)
    target.execute(f"RENAME TABLE {NAME}.away TO {NAME}.bag")
    running.resume()
    running.assert_equal()


@pytest.mark.slow
def test_the_target_table_loses_a_column(running: LongTask) -> None:
    _, target = first_and_target(running)
    target.execute(f"ALTER TABLE {NAME}.t RENAME COLUMN n TO m")
    running.shards.change()
    fault = running.fault()
    assert fault.event in ("rows.refused", "rows.no-plan")
    assert "'n'" in fault.message
    running.resume()
    fault = running.fault()
    assert fault.event == "rows.no-plan"
    assert "n" in fault.message
    target.execute(f"ALTER TABLE {NAME}.t RENAME COLUMN m TO n")
    running.resume()
    running.assert_equal()


@pytest.mark.slow
def test_the_target_takes_a_privilege_away(running: LongTask) -> None:
    _, target = first_and_target(running)
    target.execute("REVOKE ALL ON *.* FROM merger@'%'", "FLUSH PRIVILEGES")
    kill = target.execute("SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'merger'")
    target.execute(*(f"KILL {row[0]}" for row in kill))
    running.shards.change()
    fault = running.fault()
    assert "merger" in fault.message
    assert "grant merger" in " ".join(fault.remedies)
    target.execute("GRANT ALL ON *.* TO merger@'%'")
    running.resume()
    running.assert_equal()


def behind(running: LongTask) -> dict[str, dict[str, Any]]:
    """Starts at the present ends of the sources: all before the fault was applied.

    What `status` calls applied is less after a fault: it is what was saved.
    """
    return {source: start_of(server) for source, server in running.shards.sources.items()}


@pytest.mark.slow
def test_a_session_that_logs_partial_rows(running: LongTask) -> None:
    first, target = first_and_target(running)
    statement = f"UPDATE {NAME}.t1 SET name = 'part' WHERE n = 2"
    first.execute("SET SESSION binlog_row_image = MINIMAL", statement)
    fault = running.fault()
    assert fault.event == "rows.undecodable"
    assert "binlog_row_image" in fault.message
    assert f"{NAME}.t1" in fault.where
    running.resume()
    assert running.fault().event == "rows.undecodable"
    # By hand what the statement did, then on behind it.
    ids = ",".join(str(row[0]) for row in first.execute(f"SELECT id FROM {NAME}.t1 WHERE n = 2"))
    target.execute(f"UPDATE {NAME}.t SET name = 'part' WHERE id IN ({ids})")
    running.start_anew(behind(running))
    running.shards.change()
    running.assert_equal()


@pytest.mark.remedy("ddl.not-supported", "start behind")
@pytest.mark.slow
def test_a_session_that_logs_statements(running: LongTask) -> None:
    first, target = first_and_target(running)
    statement = f"INSERT INTO {NAME}.t1 VALUES (5, 'by statement', 1)"
    first.execute("SET SESSION binlog_format = STATEMENT", statement)
    fault = running.fault()
    assert fault.event == "ddl.not-supported"
    assert "by statement" in fault.message
    assert "source a" in fault.where
    way = " ".join(fault.remedies)
    show = re.search(r"SHOW BINLOG EVENTS [^)]*", way)
    assert show is not None, way
    end = next(row[4] for row in first.execute(show[0]) if row[2] == "Xid")
    starts = behind(running)
    assert starts["a"]["binlog-pos"] == end
    target.execute(f"INSERT INTO {NAME}.t VALUES (5, 'by statement', 1)")
    running.start_anew(starts, "--on-error", "exit")
    running.shards.change()
    running.assert_equal()
    # Now that errors end the task:
    task = running.task
    starts = behind(running)
    first.execute("SET SESSION binlog_format = STATEMENT", f"DELETE FROM {NAME}.t1 WHERE id = 5")
    assert task.process.wait(PATIENCE) == 1
    task.until_alone()
    assert "Traceback" not in task.console()
    target.execute(f"DELETE FROM {NAME}.t WHERE id = 5")
    running.start_anew(starts | {"a": start_of(first)})
    running.shards.change()
    running.assert_equal()


def purge(server: DatabaseServer) -> None:
    """Purge all binlogs but a new one."""
    server.execute("FLUSH BINARY LOGS")
    newest = str(start_of(server)["binlog-name"])
    deadline = time.monotonic() + PATIENCE
    # A server keeps what a dump thread reads, and may notice late that its client has gone.
    while server.execute("SHOW BINARY LOGS")[0][0] != newest:
        assert time.monotonic() < deadline, "the binlogs are still in use"
        dumps = "SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND = 'Binlog Dump'"
        for (number,) in server.execute(dumps):
            with suppress(pymysql.err.OperationalError):  # it has ended by itself
                server.execute(f"KILL {number}")
        server.execute(f"PURGE BINARY LOGS TO '{newest}'")
        time.sleep(0.1)


@pytest.mark.slow
def test_the_binlog_is_purged_while_the_task_pauses(running: LongTask) -> None:
    first, target = first_and_target(running)
    assert running.task.cli("pause", NAME).returncode == 0
    first.execute(f"INSERT INTO {NAME}.t1 VALUES (6, 'purged', 1)")
    purge(first)
    starts = behind(running)
    running.resume()
    fault = running.fault()
    assert fault.event == "source.purged"
    assert str(start_of(first)["binlog-name"]) in fault.message
    target.execute(f"INSERT INTO {NAME}.t VALUES (6, 'purged', 1)")
    running.start_anew(starts)
    running.shards.change()
    running.assert_equal()


@pytest.mark.slow
def test_in_safe_mode_the_same_key_overwrites(running: LongTask) -> None:
    first, second = running.shards.servers
    starts = {source: start_of(server) for source, server in running.shards.sources.items()}
    sync = running.values["syncers"]["sync"]
    sync["safe-mode"] = True
    running.start_anew(starts)
    first.execute(f"INSERT INTO {NAME}.t1 VALUES (78, 'of a', 1)")
    running.task.until_applied(NAME, running.shards.sources)
    second.execute(f"INSERT INTO {NAME}.t1 VALUES (78, 'of b', 1)")
    running.task.until_applied(NAME, running.shards.sources)
    target = running.shards.target
    assert target.execute(f"SELECT name FROM {NAME}.t WHERE id = 78") == (("of b",),)
    first.execute(f"DELETE FROM {NAME}.t1 WHERE id = 78")
    running.task.until_applied(NAME, running.shards.sources)
    second.execute(f"UPDATE {NAME}.t1 SET n = 2 WHERE id = 78")
    running.assert_equal()
    del sync["safe-mode"]
