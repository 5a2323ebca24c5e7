"""A task goes on only in the binlog that it has read before: at a start, and when it reconnects."""

from __future__ import annotations

from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from pyspark import SparkContext

from actors.reading import purge_watch
from actors.task.operator.removal import remove_task
from replicator.events.fault_catalogue import shared_text
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.conftest import StartServer
from tests.support.servers.binlog_ends import end_of
from tests.support.servers.clock import next_second
from tests.support.servers.faulty_proxy import FaultyLine
from tests.support.servers.mysql import MySQLServer
from tests.support.servers.mysql56 import GTID_OPTIONS, MySQL56Server
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE, caught_up, fault_of, running
from tests.support.tasks.tables import rows_of
from tests.support.tasks.task_files import load, task_dict

COLUMNS = "(id INT PRIMARY KEY AUTO_INCREMENT, n INT)"


def begin(server: DatabaseServer, database: str, rows: int) -> None:
    server.execute(f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t1 {COLUMNS}")
    for _ in range(rows):
        insert(server, database)


def insert(server: DatabaseServer, database: str) -> None:
    server.execute(f"INSERT INTO {database}.t1 (n) VALUES (1)")


@pytest.mark.remedy("source.reset", "copy anew")
@pytest.mark.parametrize("mode", ["incremental", "all"])
async def test_a_binlog_begun_anew_before_anything_of_it_was_read_is_noticed(
    mode: str,
    start_server: StartServer,
    spark: SparkContext,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    db = database_name
    source = start_server(MariaDBServer)
    target_server.execute(f"CREATE DATABASE {db}", f"CREATE TABLE {db}.t {COLUMNS}")
    begin(source, db, rows=1)
    values = task_dict(db, {"a": source}, target_server, schema=db, target_schema=db)
    values["task-mode"] = mode
    task = load(tmp_path, values)
    async with running(task, spark) as generation:
        with anyio.fail_after(PATIENCE):
            while generation.running is None:
                await anyio.sleep(LOOK_SECONDS)
    [(saved,)] = target_server.execute(f"SELECT binlog_offset FROM {db}_meta.{db}_checkpoint")
    # The time of a file's beginning is kept in seconds.
    await anyio.to_thread.run_sync(next_second)
    source.execute("RESET MASTER")
    while end_of(source).offset <= saved:
        insert(source, db)

    async def start() -> None:
        async with running(task, spark):
            await anyio.sleep_forever()

    with anyio.fail_after(PATIENCE):
        fault = await fault_of(start())
    assert fault.event == "source.reset"
    assert fault.remedies[-1].endswith(shared_text("copy_again"))
    target_server.execute(f"TRUNCATE TABLE {db}.t")
    values["task-mode"] = "all"
    for instance in values["mysql-instances"]:
        instance.pop("meta", None)
    task = load(tmp_path, values)
    await remove_task(task)
    async with running(task, spark) as generation:
        with anyio.fail_after(PATIENCE):
            while generation.running is None:
                await anyio.sleep(LOOK_SECONDS)
        insert(source, db)
        await caught_up(generation, {"a": source})
    assert rows_of(target_server, f"{db}.t") == rows_of(source, f"{db}.t1")


@pytest.mark.remedy("source.reset", "resume")
async def test_a_server_that_takes_over_the_address_is_noticed(
    start_server: StartServer,
    spark: SparkContext,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    db = database_name
    one = start_server(MariaDBServer, {"server_id": "7"})
    await anyio.to_thread.run_sync(next_second)
    other = start_server(MariaDBServer, {"server_id": "7"})
    target_server.execute(f"CREATE DATABASE {db}", f"CREATE TABLE {db}.t {COLUMNS}")
    begin(one, db, rows=0)
    begin(other, db, rows=30)
    values = task_dict(db, {"a": one}, target_server, schema=db, target_schema=db)
    with FaultyLine(one.port) as line:
        values["sources"][0]["from"]["port"] = line.port
        task = load(tmp_path, values)

        async def run() -> None:
            async with running(task, spark) as generation:
                await caught_up(generation, {"a": one})
                line.switch(other.port)
                await anyio.sleep_forever()

        async def start() -> None:
            async with running(task, spark):
                await anyio.sleep_forever()

        async with running(task, spark) as generation:
            insert(one, db)
            await caught_up(generation, {"a": one})
        with anyio.fail_after(PATIENCE):
            reconnected = await fault_of(run())
            started = await fault_of(start())
        assert (reconnected.event, started.event) == ("source.reset", "source.reset")
        assert len(rows_of(target_server, f"{db}.t")) == 1
        line.switch(one.port)
        insert(one, db)
        async with running(task, spark) as generation:
            await caught_up(generation, {"a": one})
        assert len(rows_of(target_server, f"{db}.t")) == 2


@pytest.mark.parametrize("relay", [False, True], ids=["", "relay"])
@pytest.mark.parametrize(
    ("kind", "options", "reset", "by_gtid"),
    [
        (MySQL56Server, GTID_OPTIONS, "RESET MASTER", False),
        (MySQLServer, {}, "RESET BINARY LOGS AND GTIDS", True),
    ],
)
async def test_a_binlog_begun_anew_while_the_task_runs_is_noticed(
    kind: type[DatabaseServer],
    options: dict[str, str | None],
    reset: str,
    by_gtid: bool,
    relay: bool,
    start_server: StartServer,
    spark: SparkContext,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where the source leaves the stream waiting in the former file, as if that were all."""
    monkeypatch.setattr(purge_watch, "WATCH_SECONDS", 0.3)
    db = database_name
    source = start_server(kind, options)
    target_server.execute(f"CREATE DATABASE {db}", f"CREATE TABLE {db}.t {COLUMNS}")
    begin(source, db, rows=0)
    values = task_dict(db, {"a": source}, target_server, schema=db, target_schema=db)
    values["sources"][0]["enable-gtid"] = by_gtid
    if relay:
        values["sources"][0] |= {"relay-dir": str(tmp_path / "relay"), "enable-relay": True}
    task = load(tmp_path, values)

    async def run() -> None:
        async with running(task, spark) as generation:
            for _ in range(8):
                insert(source, db)
            await caught_up(generation, {"a": source})
            await anyio.to_thread.run_sync(next_second)
            source.execute(reset)
            # Fewer than before: the new file is shorter than the place that was reached.
            insert(source, db)
            await anyio.sleep_forever()

    with anyio.fail_after(PATIENCE):
        fault = await fault_of(run())
    assert fault.event == "source.reset"
    assert len(rows_of(target_server, f"{db}.t")) == 8
