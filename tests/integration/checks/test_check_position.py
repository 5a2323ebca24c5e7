"""Checks of where a task starts to read, and of the server id that it reads with."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.checks.source.source_checks import check_source
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.conftest import StartServer
from tests.support.servers.mysql56 import MySQL56Server
from tests.support.tasks.checking import OUR_ID, address, failures, one, purge, routed


async def test_a_start_that_is_no_beginning_of_an_event(upstream: DatabaseServer) -> None:
    file = upstream.execute("SHOW BINARY LOGS")[-1][0]
    here = SourcePosition(BinlogPosition(file, 5))
    source = replace(routed(address(upstream)), start=here)
    assert failures(await check_source(source)) == {"meta_position"}
    beyond = replace(source, start=SourcePosition(BinlogPosition(file, 1 << 30)))
    assert failures(await check_source(beyond)) == {"meta_position"}


async def test_a_start_that_cannot_be_tried(upstream: DatabaseServer) -> None:
    file = upstream.execute("SHOW BINARY LOGS")[-1][0]
    start = SourcePosition(BinlogPosition(file, 4))
    source = replace(routed(address(upstream, "reader", "secret")), start=start)
    results = await check_source(source)
    assert failures(results) == {"replication_privilege"}
    one(results, "meta_position", "warning")


async def test_a_start_file_that_was_purged(upstream: DatabaseServer) -> None:
    first = upstream.execute("SHOW BINARY LOGS")[0][0]
    here = SourcePosition(BinlogPosition(first, 4))
    source = replace(routed(address(upstream, "full", "secret")), start=here)
    one(await check_source(source), "meta_position", "passed")
    upstream.execute("FLUSH LOGS")
    last = purge(upstream)
    results = await check_source(source)
    assert failures(results) == {"meta_position"}
    failed = one(results, "meta_position", "failed")
    assert last in failed.finding
    assert "would leave out the changes in between" in failed.remedies[0]
    followed = one(await check_source(replace(source, followed=True)), "meta_position", "failed")
    assert not any("meta:" in way for way in followed.remedies), "the saved position counts"


async def test_a_gtid_that_was_purged_at_mariadb(start_server: StartServer) -> None:
    server = start_server(MariaDBServer)
    server.execute("CREATE DATABASE shop", "CREATE TABLE shop.t1 (id INT PRIMARY KEY)")
    early = server.execute("SELECT @@GLOBAL.gtid_binlog_pos")[0][0]
    start = SourcePosition(BinlogPosition("", 4), early)
    source = replace(routed(address(server)), start=start)
    one(await check_source(source), "meta_position", "passed")
    server.execute("INSERT INTO shop.t1 VALUES (1)", "FLUSH LOGS")
    server.execute("INSERT INTO shop.t1 VALUES (2)", "FLUSH LOGS")
    purge(server)
    assert failures(await check_source(source)) == {"meta_position"}


async def test_a_gtid_that_was_purged_at_mysql(start_server: StartServer) -> None:
    options = {"gtid_mode": "ON", "enforce_gtid_consistency": "ON", "log_slave_updates": None}
    server = start_server(MySQL56Server, options)
    server.execute("CREATE DATABASE shop", "CREATE TABLE shop.t1 (id INT PRIMARY KEY)")
    early = server.execute("SELECT @@GLOBAL.gtid_executed")[0][0]
    start = SourcePosition(BinlogPosition("", 4), early)
    source = replace(routed(address(server)), start=start)
    one(await check_source(source), "meta_position", "passed")
    server.execute("INSERT INTO shop.t1 VALUES (1)", "FLUSH LOGS")
    purge(server)
    assert failures(await check_source(source)) == {"meta_position"}


@contextmanager
def registered(server: DatabaseServer, server_id: int, name: bytes) -> Iterator[None]:
    """A replica with that id, reading the binlog."""
    connection: Any = server.connect()
    try:
        ((file, offset, *_),) = server.execute("SHOW MASTER STATUS")
        with connection.cursor() as cursor:
            cursor.execute("SET @master_binlog_checksum = @@global.binlog_checksum")
            cursor.execute("SET @mariadb_slave_capability = 4")
        body = (
            struct.pack("<IB", server_id, len(name)) + name + struct.pack("<BBHII", 0, 0, 0, 0, 0)
        )
        connection._execute_command(0x15, body)
        connection._read_packet()
        connection._execute_command(0x12, struct.pack("<IHI", offset, 0, server_id) + file.encode())
        connection._read_packet()
        yield
    finally:
        connection._force_close()


async def test_a_server_id_that_another_replica_has(upstream: DatabaseServer) -> None:
    source = replace(routed(address(upstream)), server_id=OUR_ID + 1)
    with registered(upstream, OUR_ID + 1, b"replica7"):
        results = await check_source(source)
        assert failures(results) == {"server_id"}
        assert "replica7" in one(results, "server_id", "failed").finding
        assert upstream.execute("SHOW SLAVE HOSTS"), "the check must not end the other replica"


async def test_a_reader_of_ours_is_only_a_warning(upstream: DatabaseServer) -> None:
    source = replace(routed(address(upstream)), server_id=OUR_ID + 2)
    with registered(upstream, OUR_ID + 2, b"replicator"):
        results = await check_source(source)
    assert failures(results) == set()
    one(results, "server_id", "warning")


async def test_the_sources_own_server_id(upstream: DatabaseServer) -> None:
    source = replace(routed(address(upstream)), server_id=upstream.server_id)
    assert failures(await check_source(source)) == {"server_id"}
