"""What can make a full copy lose rows, double them, stand still or stand in others' way."""

from __future__ import annotations

import time
from collections.abc import Callable

import anyio
import pytest
from structlog.testing import capture_logs

from actors.reading import purge_watch
from actors.task import generation as generation_module
from actors.task.generation import Generation
from replicator.downstream.rows.write_session import Session
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseAddress
from replicator.pipeline.copy.source_stream import SourceStream
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.conftest import StartServer
from tests.integration.copy.test_copy_rules import begun
from tests.support.servers.mysql import MySQLServer
from tests.support.streams.binlog_streams import kill
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE, fault_of

MakeMerging = Callable[..., Merging]


def chunks_of(merging: Merging, *, rows: int, speed: int = 0) -> None:
    merging.more |= {
        "mydumpers": {"small": {"rows": rows, "threads": 1}},
        "copy": {"rows-per-second": speed},
    }
    merging.instance = {"mydumper-config-name": "small"}


@pytest.fixture(params=["mariadb_source", "mysql56_source"])
def source(request: pytest.FixtureRequest) -> DatabaseServer:
    """One that tells the place of a snapshot in its binlog, and one that does not."""
    server: DatabaseServer = request.getfixturevalue(request.param)
    return server


@pytest.fixture
def merging(merging_from: MakeMerging, mariadb_source: DatabaseServer) -> Merging:
    merging = merging_from(mariadb_source)
    merging.mode = "full"
    chunks_of(merging, rows=5)
    return merging


@pytest.mark.not_on_tidb("it has no UUID, INET4 and INET6")
async def test_keys_whose_text_is_not_their_bytes(merging: Merging) -> None:
    kinds = {
        "uuid": "CONCAT(LPAD(HEX(seq * 7919), 8, '0'), '-1234-4123-8234-', LPAD(seq, 12, '0'))",
        "inet6": "CONCAT('2001:db8::', HEX(seq * 37))",
        "inet4": "CONCAT(seq * 2, '.10.9.', seq)",
    }
    for kind, value in kinds.items():
        merging.create(kind, f"(k {kind} PRIMARY KEY, n INT)", with_target=False)
        merging.do(f"INSERT INTO {kind}_1 SELECT {value}, seq FROM seq_1_to_40")
    await merging.copy()
    assert not merging.differences()


async def test_a_target_with_a_key_that_the_shards_lack(merging: Merging) -> None:
    merging.mode = "all"
    chunks_of(merging, rows=50, speed=200)
    merging.create("a", "(id INT PRIMARY KEY, n INT)")
    merging.create(
        "z",
        "(id INT PRIMARY KEY, n INT)",
        target="(own BIGINT AUTO_INCREMENT PRIMARY KEY, id INT, n INT)",
    )
    merging.do("INSERT INTO a_1 SELECT seq, seq FROM seq_1_to_400")
    merging.do("INSERT INTO z_1 SELECT seq, seq FROM seq_1_to_100")
    async with begun(merging, chunks=1) as (generation, stop):
        merging.do(
            "INSERT INTO z_1 VALUES (1000, 0)",
            "UPDATE z_1 SET n = -1 WHERE id = 1",
            "DELETE FROM z_1 WHERE id = 50",
        )
        await merging.copied(generation)
        await merging.check(generation, {"z": "id, n"})
        stop.set()


@pytest.mark.parametrize(
    ("kind", "limit"),
    [(MariaDBServer, "max_statement_time = 1"), (MySQLServer, "max_execution_time = 1000")],
)
async def test_limits_that_a_server_has_for_others(
    kind: type[DatabaseServer], limit: str, start_server: StartServer
) -> None:
    server = start_server(kind)
    server.execute(
        "CREATE DATABASE d", "CREATE TABLE d.t (n INT)", "INSERT INTO d.t VALUES (1), (2)"
    )
    server.execute(f"SET GLOBAL sql_select_limit = 3, GLOBAL max_join_size = 9, GLOBAL {limit}")
    server.execute(
        "SET GLOBAL sql_safe_updates = ON, GLOBAL completion_type = CHAIN, GLOBAL autocommit = 0"
    )
    many = "SELECT COUNT(*) FROM information_schema.collations a, information_schema.collations b"
    four, slow = "SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4", "SLEEP(1.1)"
    address = DatabaseAddress(server.host, server.port, server.user, server.password)
    stream = SourceStream(address)
    assert sum(rows for _, rows in stream.blocks(four.encode())) == 4
    assert list(stream.rows(f"SELECT {slow}".encode())) == [(0,)]
    stream.close()
    session = Session(address)
    assert len(session.rows(four.encode())) == 4
    assert [int(str(row[0])) for row in session.rows(f"SELECT {slow}".encode())] == [0]
    session.run(b"BEGIN")
    session.run(b"COMMIT")
    session.run(b"DELETE FROM d.t WHERE n = 1")
    session.close()
    connection = Connection(address)
    assert await connection.fetch("SELECT n FROM d.t") == [(2,)]
    assert len(await connection.fetch(four)) == 4
    assert await connection.fetch(f"SELECT {slow}") == [(0,)]
    assert await connection.fetch(many) > [(9,)]
    connection.close()


async def test_rows_that_are_nothing_but_nothing(merging: Merging) -> None:
    for name, key in (("bag", ""), ("x", "PRIMARY KEY")):
        merging.create(name, f"(s VARCHAR(5) {key})", with_target=False)
        merging.do(f"INSERT INTO {name}_1 VALUES (''), ('N'), ('\\\\N'), ('NULL')")
    merging.do("INSERT INTO bag_1 VALUES (''), (NULL), (NULL)")
    await merging.copy()
    assert not merging.differences()


@pytest.mark.remedy("server.refused", "resume")
async def test_a_default_of_bytes_that_are_no_text_is_told(merging: Merging) -> None:
    merging.create("x", "(id INT PRIMARY KEY, b BINARY(3) DEFAULT x'ff00fe')", with_target=False)
    merging.do("INSERT INTO x_1 (id) VALUES (1)")
    fault = await fault_of(merging.copy())
    assert fault.event == "server.refused"
    assert "SHOW CREATE TABLE" in fault.message
    assert "UNHEX" in fault.message
    merging.do("ALTER TABLE x_1 MODIFY b BINARY(3) DEFAULT (UNHEX('FF00FE'))")
    await merging.copy()
    assert not merging.differences()


# --- those who write to the shards, and those who lock them ---


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job gives up after some attempts, and the driver tells so, in seconds rather than ten."""
    monkeypatch.setattr(generation_module, "TARGET_PATIENCE", 3.0)


async def waits(generation: Generation) -> None:
    assert generation.copy is not None
    with anyio.fail_after(PATIENCE):
        while not generation.copy.progress.waiting:
            await anyio.sleep(LOOK_SECONDS)


@pytest.mark.usefixtures("impatient")
async def test_a_long_transaction_at_the_source_does_not_keep_the_copy_from_stopping(
    merging_from: MakeMerging, mysql56_source: DatabaseServer
) -> None:
    merging = merging_from(mysql56_source)
    merging.mode = "all"
    merging.create("x", "(id INT PRIMARY KEY, n INT)", with_target=False)
    with merging.source.connect(database=merging.database, autocommit=False) as writing:
        writing.cursor().execute("INSERT INTO x_1 VALUES (1, 1)")
        async with begun(merging, chunks=0) as (generation, stop):
            await waits(generation)
            stop.set()
        writing.commit()
    assert generation.running is None
    async with begun(merging, chunks=0) as (generation, stop):
        await merging.copied(generation)
        await merging.check(generation)
        stop.set()


@pytest.mark.usefixtures("impatient")
async def test_a_shard_that_somebody_locks_is_waited_for(
    merging_from: MakeMerging, source: DatabaseServer
) -> None:
    merging = merging_from(source)
    merging.mode = "all"
    chunks_of(merging, rows=50, speed=100)
    merging.create("x", "(id INT PRIMARY KEY, n INT)", with_target=False)
    numbers = ",".join(f"({n},{n})" for n in range(600))
    merging.do(f"INSERT INTO x_1 VALUES {numbers}")
    with merging.source.connect(database=merging.database) as locking:
        async with begun(merging, chunks=2) as (generation, stop):
            locking.cursor().execute("LOCK TABLES x_1 WRITE")
            await waits(generation)
            stop.set()
        locking.cursor().execute("UNLOCK TABLES")
    chunks_of(merging, rows=50)
    merging.changed(mode="all")
    async with begun(merging, chunks=2) as (generation, stop):
        await merging.copied(generation)
        await merging.check(generation)
        stop.set()


@pytest.mark.usefixtures("impatient")
async def test_who_writes_to_a_table_without_a_key_does_not_wait_for_long(
    merging_from: MakeMerging, mysql56_source: DatabaseServer
) -> None:
    merging = merging_from(mysql56_source)
    merging.mode = "all"
    chunks_of(merging, rows=50, speed=50)
    merging.create("a", "(id INT PRIMARY KEY)", with_target=False)
    merging.create("bag", "(n INT)", with_target=False)
    merging.do("INSERT INTO a_1 VALUES " + ",".join(f"({n})" for n in range(160)))
    name = merging.database
    planned = f"SELECT 1 FROM {name}_meta.{name}_chunk WHERE table_name = 'bag_1'"
    longest = 0.0
    async with begun(merging, chunks=1) as (generation, stop):
        with anyio.fail_after(PATIENCE):
            while not merging.target.execute(planned):
                await anyio.sleep(LOOK_SECONDS)
        assert generation.copy is not None
        with merging.source.connect(database=name, autocommit=False) as writing:
            writing.cursor().execute("INSERT INTO bag_1 VALUES (1)")
            with anyio.fail_after(PATIENCE):
                while not generation.copy.progress.waiting:
                    began = time.monotonic()
                    await anyio.to_thread.run_sync(merging.do, "INSERT INTO bag_1 VALUES (2)")
                    longest = max(longest, time.monotonic() - began)
            writing.commit()
        await merging.copied(generation)
        await merging.check(generation)
        stop.set()
    assert longest < 5


async def test_rows_that_come_before_a_table_that_keeps_no_old_rows_is_read(
    merging_from: MakeMerging, source: DatabaseServer
) -> None:
    merging = merging_from(source)
    merging.mode = "all"
    chunks_of(merging, rows=50, speed=50)
    merging.create("a", "(id INT PRIMARY KEY)", with_target=False)
    merging.create("bag", "(n INT) ENGINE=MyISAM", with_target=False)
    merging.do("INSERT INTO a_1 VALUES " + ",".join(f"({n})" for n in range(160)))
    name = merging.database
    planned = f"SELECT 1 FROM {name}_meta.{name}_chunk WHERE table_name = 'bag_1'"
    async with begun(merging, chunks=1) as (generation, stop):
        with anyio.fail_after(PATIENCE):
            while not merging.target.execute(planned):
                await anyio.sleep(LOOK_SECONDS)
        with merging.source.connect(database=name) as writing:
            cursor = writing.cursor()
            cursor.execute("LOCK TABLES bag_1 WRITE")
            with anyio.fail_after(PATIENCE):
                while True:
                    cursor.execute("SHOW PROCESSLIST")
                    if any("lock" in str(row[6]).lower() for row in cursor.fetchall()):
                        break
                    await anyio.sleep(LOOK_SECONDS)
            cursor.execute("INSERT INTO bag_1 VALUES (1)")
            cursor.execute("UNLOCK TABLES")
        await merging.copied(generation)
        await merging.check(generation)
        stop.set()


async def test_connections_to_a_source_that_are_killed_are_opened_again(
    merging_from: MakeMerging, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.mode = "full"
    chunks_of(merging, rows=50, speed=100)
    merging.create("x", "(id INT PRIMARY KEY, n INT)", with_target=False)
    merging.do("INSERT INTO x_1 SELECT seq, seq FROM seq_1_to_400")
    others = "SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID()"
    async with begun(merging, chunks=2) as (generation, _):
        for (number,) in merging.source.execute(f"{others} AND user = 'root'"):
            kill(merging.source, number)
    assert generation.finished
    assert not merging.differences()


async def test_purging_what_is_needed_behind_the_copy_is_told(
    start_server: StartServer, merging_from: MakeMerging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purge_watch, "WATCH_SECONDS", 0.1)
    merging = merging_from(start_server(MariaDBServer))
    merging.mode = "all"
    chunks_of(merging, rows=5, speed=5)
    merging.create("x", "(id INT PRIMARY KEY, n INT)", with_target=False)
    merging.do("INSERT INTO x_1 SELECT seq, seq FROM seq_1_to_1000")

    async def run() -> None:
        async with begun(merging, chunks=1):
            while True:
                merging.do("INSERT INTO x_1 SELECT MAX(id) + 1, 0 FROM x_1", "FLUSH BINARY LOGS")
                last = merging.source.execute("SHOW MASTER STATUS")[0][0]
                # The server keeps files back for a while that its own recovery may need.
                await anyio.sleep(0.2)
                merging.do(f"PURGE BINARY LOGS TO '{last}'")

    with capture_logs() as logged, anyio.fail_after(PATIENCE):
        fault = await fault_of(run())
    assert fault.event == "source.purged"
    assert "the full copy is under way" in fault.message
    assert "source.purge-near" in [entry["event"] for entry in logged]
