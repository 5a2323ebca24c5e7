from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from replicator.binlog.position import BinlogPosition, SourcePosition
from replicator.checks import (
    CheckResult,
    SourceToCheck,
    TargetToCheck,
    TaskToCheck,
    check_source,
    check_structures,
    check_target,
    run_checks,
)
from replicator.checks.copying import check_locking
from replicator.mysql.connection import DatabaseAddress
from replicator.mysql.names import TableName
from replicator.routing import AllowList, Router, RouteRule, Routes
from replicator.sandbox.errors import ServerUnavailableError
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.mysql56 import MySQL56Server
from replicator.sandbox.server import DatabaseServer

OUR_ID = 4_000_001

StartServer = Callable[..., DatabaseServer]


def started(server: DatabaseServer) -> DatabaseServer:
    try:
        server.start()
    except ServerUnavailableError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    return server


@pytest.fixture(scope="module")
def mariadb() -> Iterator[DatabaseServer]:
    with started(MariaDBServer()) as server:
        yield server


@pytest.fixture(scope="module", params=[MariaDBServer, MySQL56Server])
def upstream(request: pytest.FixtureRequest) -> Iterator[DatabaseServer]:
    with started(request.param()) as server:
        server.execute(
            "CREATE DATABASE shop",
            "CREATE TABLE shop.t1 (id INT PRIMARY KEY, a VARCHAR(10))",
            "CREATE TABLE shop.t2 (id INT PRIMARY KEY, a VARCHAR(10))",
            "GRANT REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO 'full'@'127.0.0.1'"
            " IDENTIFIED BY 'secret'",
            "GRANT SELECT ON shop.* TO 'full'@'127.0.0.1'",
            "GRANT SELECT ON shop.* TO 'reader'@'127.0.0.1' IDENTIFIED BY 'secret'",
            "GRANT REPLICATION CLIENT ON *.* TO 'reader'@'127.0.0.1'",
            "GRANT REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO 'blind'@'127.0.0.1'"
            " IDENTIFIED BY 'secret'",
            "GRANT INSERT ON shop.t1 TO 'blind'@'127.0.0.1'",
        )
        yield server


def address(server: DatabaseServer, user: str = "root", password: str = "") -> DatabaseAddress:
    return DatabaseAddress(server.host, server.port, user, password)


def routed(
    where: DatabaseAddress, *, schema: str = "shop", table: str = "t*", source_id: str = "a"
) -> SourceToCheck:
    rules = [RouteRule("merge", schema, table, "merged", "t")]
    routes = Routes(rules, case_sensitive=False)
    allow = AllowList(do_dbs=[schema], case_sensitive=False)
    return SourceToCheck(source_id, where, Router(allow, routes), routes, OUR_ID)


def task(*sources: SourceToCheck, target: DatabaseServer, **options: Any) -> TaskToCheck:
    return TaskToCheck(sources, TargetToCheck(address(target), "dm_meta", "merge"), **options)


def failures(results: list[CheckResult]) -> set[str]:
    assert all(r.ways_out for r in results if r.state != "passed")
    return {r.name for r in results if r.state == "failed"}


def one(results: list[CheckResult], name: str, state: str) -> CheckResult:
    found = [r for r in results if r.name == name and r.state == state]
    assert len(found) == 1, results
    return found[0]


@contextmanager
def global_setting(server: DatabaseServer, name: str, value: str) -> Iterator[None]:
    ((before,),) = server.execute(f"SELECT @@GLOBAL.{name}")
    server.execute(f"SET GLOBAL {name} = {value}")
    try:
        yield
    finally:
        back = before if isinstance(before, int) else f"'{before}'"
        server.execute(f"SET GLOBAL {name} = {back}")


def purge(server: DatabaseServer) -> str:
    """Remove all binlogs but the last and return its name.

    MariaDB keeps a file without a word until its storage engine has let go of it, which no event
    tells.
    """
    deadline = time.monotonic() + 20
    while True:
        logs = server.execute("SHOW BINARY LOGS")
        if len(logs) == 1:
            return str(logs[0][0])
        assert time.monotonic() < deadline, logs
        server.execute(f"PURGE BINARY LOGS TO '{logs[-1][0]}'")
        time.sleep(0.02)


async def test_a_source_that_is_ready_passes(upstream: DatabaseServer) -> None:
    results = await check_source(routed(address(upstream, "full", "secret")))
    assert failures(results) == set()
    passed = {r.name for r in results if r.state == "passed"}
    assert passed >= {"replication_privilege", "dump_privilege", "routes", "binlog_format"}


async def test_wrong_password(upstream: DatabaseServer) -> None:
    results = await check_source(routed(address(upstream, "full", "wrong")))
    assert failures(results) == {"connection"}
    assert "refuses the login" in results[0].finding
    assert "wrong" not in str(results)


async def test_nothing_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    results = await check_source(routed(DatabaseAddress("127.0.0.1", port, "root")))
    assert "nothing listens" in one(results, "connection", "failed").finding


async def test_unknown_host() -> None:
    results = await check_source(routed(DatabaseAddress("nowhere.invalid", 3306, "root")))
    assert "not known" in one(results, "connection", "failed").finding


async def test_tls_that_the_server_does_not_offer(mariadb: DatabaseServer) -> None:
    where = replace(address(mariadb), ssl_ca=__file__)
    results = await check_source(routed(where))
    assert "TLS" in one(results, "connection", "failed").finding
    missing = replace(address(mariadb), ssl_ca="/nowhere/ca.pem")
    results = await check_source(routed(missing))
    assert "/nowhere/ca.pem" in one(results, "connection", "failed").ways_out[0]


@pytest.mark.parametrize("kind", [MariaDBServer, MySQL56Server])
async def test_no_binlog(kind: type[DatabaseServer], start_server: StartServer) -> None:
    server = start_server(kind, {"log_bin": None, "skip_log_bin": None})
    server.execute("CREATE DATABASE shop", "CREATE TABLE shop.t1 (id INT PRIMARY KEY)")
    results = await check_source(routed(address(server)))
    assert failures(results) == {"binlog_enable"}
    copied_only = replace(routed(address(server)), reads_binlog=False)
    assert failures(await check_source(copied_only)) == set()


async def test_statements_in_the_binlog(upstream: DatabaseServer) -> None:
    with global_setting(upstream, "binlog_format", "'STATEMENT'"):
        results = await check_source(routed(address(upstream)))
    assert failures(results) == {"binlog_format"}


async def test_minimal_images(upstream: DatabaseServer) -> None:
    with global_setting(upstream, "binlog_row_image", "'MINIMAL'"):
        results = await check_source(routed(address(upstream)))
    assert failures(results) == {"binlog_row_image"}


async def test_missing_replication_privilege(upstream: DatabaseServer) -> None:
    results = await check_source(routed(address(upstream, "reader", "secret")))
    assert failures(results) == {"replication_privilege"}
    assert "REPLICATION SLAVE" in one(results, "replication_privilege", "failed").ways_out[0]


async def test_missing_select(upstream: DatabaseServer) -> None:
    results = await check_source(routed(address(upstream, "blind", "secret")))
    assert failures(results) == {"dump_privilege"}
    found = one(results, "dump_privilege", "failed")
    assert "shop.t1" in found.finding
    assert "GRANT SELECT ON `shop`.*" in found.ways_out[0]


async def test_a_route_that_matches_nothing_names_the_nearest(upstream: DatabaseServer) -> None:
    results = await check_source(routed(address(upstream), table="tt1"))
    assert "shop.t1" in one(results, "routes", "warning").finding


async def test_nothing_is_replicated(mariadb: DatabaseServer) -> None:
    results = await check_source(routed(address(mariadb)))
    assert "routes" in failures(results)


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
    assert last in one(results, "meta_position", "failed").finding


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


async def test_schemas_kept_out_of_the_binlog(start_server: StartServer) -> None:
    server = start_server(MariaDBServer, {"binlog_ignore_db": "shop"})
    server.execute("CREATE DATABASE shop", "CREATE TABLE shop.t1 (id INT PRIMARY KEY)")
    assert failures(await check_source(routed(address(server)))) == {"binlog_db"}


async def test_a_target_that_is_ready_passes_and_is_left_as_it_was(
    upstream: DatabaseServer,
) -> None:
    before = upstream.execute("SHOW DATABASES")
    results = await check_target(TargetToCheck(address(upstream), "dm_meta", "merge"))
    assert {r.state for r in results} == {"passed"}
    assert upstream.execute("SHOW DATABASES") == before


async def test_a_read_only_target(upstream: DatabaseServer) -> None:
    upstream.execute(
        "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX ON *.*"
        " TO 'writer'@'127.0.0.1' IDENTIFIED BY 'secret'"
    )
    target = TargetToCheck(address(upstream, "writer", "secret"), "dm_meta", "merge")
    assert failures(await check_target(target)) == set()
    with global_setting(upstream, "read_only", "1"):
        assert failures(await check_target(target)) == {"read_only"}


async def test_a_target_that_may_not_be_changed(upstream: DatabaseServer) -> None:
    upstream.execute(
        "CREATE DATABASE IF NOT EXISTS dm_meta",
        "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP ON dm_meta.*"
        " TO 'noalter'@'127.0.0.1' IDENTIFIED BY 'secret'",
    )
    try:
        target = TargetToCheck(address(upstream, "noalter", "secret"), "dm_meta", "merge")
        results = await check_target(target)
        assert failures(results) == {"target_privilege"}
        assert "ALTER" in one(results, "target_privilege", "failed").finding
        assert upstream.execute("SHOW TABLES FROM dm_meta") == ()
    finally:
        upstream.execute("DROP DATABASE dm_meta")


async def test_a_target_that_is_slow_to_load(upstream: DatabaseServer) -> None:
    target = TargetToCheck(address(upstream), "dm_meta", "merge")
    with (
        global_setting(upstream, "local_infile", "0"),
        global_setting(upstream, "max_allowed_packet", "1048576"),
    ):
        results = await check_target(target)
    assert failures(results) == set()
    one(results, "local_infile", "warning")
    one(results, "max_allowed_packet", "warning")


@pytest.fixture
def target(mariadb: DatabaseServer) -> Iterator[DatabaseServer]:
    mariadb.execute("CREATE DATABASE merged")
    yield mariadb
    mariadb.execute("DROP DATABASE merged")


async def test_a_missing_target_table_comes_with_its_statement(
    upstream: DatabaseServer, target: DatabaseServer
) -> None:
    source = routed(address(upstream))
    results = await check_structures(task(source, target=target, task_mode="incremental"))
    way_out = one(results, "table_schema", "warning").ways_out[0]
    assert "CREATE TABLE IF NOT EXISTS `merged`.`t` (" in way_out
    if isinstance(upstream, MariaDBServer):
        for statement in way_out.rstrip(";").split("; "):
            target.execute(statement)
        assert failures(await check_structures(task(source, target=target))) == set()
    results = await check_structures(task(source, target=target, task_mode="all"))
    one(results, "table_schema", "passed")


async def test_members_and_target_that_fit(
    upstream: DatabaseServer, target: DatabaseServer
) -> None:
    target.execute(
        "CREATE TABLE merged.t (id BIGINT PRIMARY KEY, a VARCHAR(20), shard INT NOT NULL DEFAULT 0)"
    )
    results = await check_structures(task(routed(address(upstream)), target=target))
    assert {r.state for r in results} == {"passed"}, results


async def test_a_column_that_does_not_fit(upstream: DatabaseServer, target: DatabaseServer) -> None:
    target.execute("CREATE TABLE merged.t (id INT PRIMARY KEY, a VARCHAR(5), b INT NOT NULL)")
    source = routed(address(upstream))
    results = await check_structures(task(source, target=target))
    found = [r for r in results if r.state == "failed"]
    assert {r.name for r in found} == {"table_schema"}
    assert any("`a`" in r.finding and "(a: shop.t1, a: shop.t2)" in r.finding for r in found)
    for result in found:
        target.execute(result.ways_out[0].rstrip(";"))
    assert failures(await check_structures(task(source, target=target))) == set()


async def test_differences_that_later_ddl_may_remove_are_warnings(
    upstream: DatabaseServer, target: DatabaseServer
) -> None:
    target.execute("CREATE TABLE merged.t (id INT PRIMARY KEY)")
    start = SourcePosition(BinlogPosition("binlog.000001", 4))
    source = replace(routed(address(upstream)), start=start)
    results = await check_structures(task(source, target=target, task_mode="incremental"))
    assert failures(results) == set()
    one(results, "table_schema", "warning")


async def test_members_that_differ_and_count_by_themselves(
    mariadb: DatabaseServer, target: DatabaseServer
) -> None:
    mariadb.execute(
        "CREATE DATABASE shop2",
        "CREATE TABLE shop2.t1 (id INT AUTO_INCREMENT PRIMARY KEY)",
        "CREATE TABLE shop2.t2 (id INT AUTO_INCREMENT PRIMARY KEY, extra INT)",
    )
    try:
        source = routed(address(mariadb), schema="shop2")
        results = await check_structures(task(source, target=target))
        assert failures(results) == {"schema_of_shard_tables"}
        assert "`extra`" in one(results, "schema_of_shard_tables", "failed").finding
        finding = one(results, "auto_increment_ID", "warning").finding
        assert "a: shop2.t1" in finding
        assert "a: shop2.t2" in finding
        uncoordinated = await check_structures(task(source, target=target, pessimistic=False))
        assert failures(uncoordinated) == set()
    finally:
        mariadb.execute("DROP DATABASE shop2")


async def test_members_must_agree_for_a_full_copy_also_where_the_target_is_missing(
    mariadb: DatabaseServer, target: DatabaseServer
) -> None:
    mariadb.execute(
        "CREATE DATABASE shop2",
        "CREATE TABLE shop2.t1 (id INT PRIMARY KEY, a VARCHAR(9) CHARACTER SET latin1)",
        "CREATE TABLE shop2.t2 (id BIGINT NOT NULL, a VARCHAR(9) CHARACTER SET utf8mb4 NOT NULL)",
        "CREATE TABLE shop2.t3 (id INT PRIMARY KEY, a VARCHAR(9) CHARACTER SET latin1)",
    )
    source = routed(address(mariadb), schema="shop2")
    try:
        for mode in ("full", "all"):
            wanted = task(source, target=target, task_mode=mode)
            results = await check_structures(wanted)
            assert failures(results) == {"schema_of_shard_tables"}
            finding = one(results, "schema_of_shard_tables", "failed").finding
            assert "differ from a: shop2.t1: in a: shop2.t2 " in finding
            assert "`id` is bigint(20) NOT NULL, not int(11) NOT NULL" in finding
            assert "`a` is varchar(9) utf8mb4 NOT NULL, not varchar(9) latin1" in finding
            assert "unique keys are none, not (id)" in finding
            one(results, "table_schema", "passed")
            uncoordinated = await check_structures(replace(wanted, pessimistic=False))
            assert failures(uncoordinated) == set()
            one(uncoordinated, "schema_of_shard_tables", "warning")
    finally:
        mariadb.execute("DROP DATABASE shop2")


async def test_what_a_target_is_made_without_and_what_no_binlog_tells(
    upstream: DatabaseServer, target: DatabaseServer
) -> None:
    upstream.execute(
        "CREATE DATABASE shop2",
        "CREATE TABLE shop2.parent (id INT PRIMARY KEY)",
        "CREATE TABLE shop2.t1 (id INT AUTO_INCREMENT PRIMARY KEY, up INT, CONSTRAINT up"
        " FOREIGN KEY (up) REFERENCES shop2.parent (id) ON DELETE CASCADE)",
        "CREATE TABLE shop2.t2 LIKE shop2.t1",
    )
    source = routed(address(upstream), schema="shop2")
    try:
        copied = await check_structures(task(source, target=target, task_mode="full"))
        assert failures(copied) == set()
        found = one(copied, "foreign_keys", "warning")
        assert "without the foreign keys of a: shop2.t1: CONSTRAINT `up` FOREIGN" in found.finding
        assert "ALTER TABLE `merged`.`t` ADD CONSTRAINT `up` FOREIGN KEY" in found.ways_out[0]
        assert "`on-duplicate-logical`" in one(copied, "auto_increment_ID", "warning").finding
        followed = await check_structures(task(source, target=target, task_mode="incremental"))
        found = one(followed, "foreign_keys", "warning")
        assert "foreign keys of a: shop2.t1 change or delete rows" in found.finding
        assert "stop the task" in one(followed, "auto_increment_ID", "warning").finding
        # The statement for a target that has to be made by hand names no parent of the shard.
        (way_out,) = [
            r.ways_out[0] for r in followed if r.name == "table_schema" and "merged.t" in r.finding
        ]
        assert "CREATE TABLE IF NOT EXISTS `merged`.`t` (" in way_out
        assert "FOREIGN" not in way_out
    finally:
        upstream.execute("DROP DATABASE shop2")


async def test_rows_that_go_along_with_their_parent_are_in_no_binlog(
    upstream: DatabaseServer,
) -> None:
    """What the warning says is so: the child's row is gone, and no event tells of it."""
    upstream.execute(
        "CREATE DATABASE shop2",
        "CREATE TABLE shop2.parent (id INT PRIMARY KEY)",
        "CREATE TABLE shop2.child (id INT PRIMARY KEY, up INT, FOREIGN KEY (up)"
        " REFERENCES shop2.parent (id) ON DELETE CASCADE)",
        "INSERT INTO shop2.parent VALUES (1)",
        "INSERT INTO shop2.child VALUES (7, 1)",
    )
    try:
        ((file, offset, *_),) = upstream.execute("SHOW MASTER STATUS")
        upstream.execute("DELETE FROM shop2.parent")
        assert upstream.execute("SELECT * FROM shop2.child") == ()
        events = upstream.execute(f"SHOW BINLOG EVENTS IN '{file}' FROM {offset}")
        # MariaDB names the child's table, too, but no event has rows of it.
        named = {row[5].split()[1]: row[5] for row in events if row[2] == "Table_map"}
        changed = [named[row[5].split()[1]] for row in events if row[2].startswith("Delete_rows")]
        assert len(changed) == 1
        assert "shop2.parent" in changed[0]
    finally:
        upstream.execute("DROP DATABASE shop2")


async def test_collations_that_the_target_lacks(
    upstream: DatabaseServer, tidb_target: DatabaseServer
) -> None:
    upstream.execute(
        "CREATE DATABASE shop2",
        "CREATE TABLE shop2.t1 (id VARCHAR(9) PRIMARY KEY) CHARACTER SET latin1",
    )
    try:
        wanted = task(routed(address(upstream), schema="shop2"), target=tidb_target)
        login = DatabaseAddress(
            tidb_target.host, tidb_target.port, tidb_target.user, tidb_target.password
        )
        wanted = replace(wanted, target=replace(wanted.target, address=login))
        found = one(await check_structures(wanted), "table_schema", "warning")
        assert "in merged.t latin1_swedish_ci becomes latin1_bin" in found.finding
    finally:
        upstream.execute("DROP DATABASE shop2")


async def test_tables_must_be_lockable_where_snapshots_have_no_place(
    mariadb_source: DatabaseServer, mysql56_source: DatabaseServer, target: DatabaseServer
) -> None:
    for server in (mariadb_source, mysql56_source):
        server.execute(
            "CREATE DATABASE shop2",
            "CREATE TABLE shop2.t1 (a INT PRIMARY KEY)",
            "CREATE TABLE shop2.t2 (a INT PRIMARY KEY)",
            "GRANT SELECT ON shop2.* TO 'copier'@'127.0.0.1' IDENTIFIED BY 'secret'",
        )
    source = routed(address(mysql56_source, "copier", "secret"), schema="shop2")
    wanted = task(source, target=target, task_mode="all")
    try:
        followed = await check_structures(replace(wanted, task_mode="incremental"))
        assert failures(followed) == set()
        copied = await check_structures(replace(wanted, task_mode="full"))
        assert failures(copied) == {"dump_privilege"}
        results = await check_structures(wanted)
        assert failures(results) == {"dump_privilege"}
        way_out = one(results, "dump_privilege", "failed").ways_out[0]
        assert way_out == "GRANT LOCK TABLES ON `shop2`.* TO 'copier'@'%';"
        mysql56_source.execute(way_out.replace("%", "127.0.0.1"))
        found = one(await check_structures(wanted), "dump_privilege", "passed")
        assert "shop2.t1, shop2.t2" in found.finding
        with mysql56_source.connect() as busy, busy.cursor() as cursor:
            # Somebody else's lock is waited for, but not for long, and is no refusal.
            cursor.execute("LOCK TABLES shop2.t1 WRITE, shop2.t2 WRITE")
            results = [*await check_locking(source, [TableName("shop2", "t1")])]
        assert [result.state for result in results] == ["passed"]
        # MariaDB tells the place of a snapshot: nothing is locked there.
        telling = routed(address(mariadb_source, "copier", "secret"), schema="shop2")
        results = await check_structures(task(telling, target=target, task_mode="all"))
        assert not [r for r in results if r.name == "dump_privilege"]
    finally:
        for server in (mariadb_source, mysql56_source):
            server.execute("DROP DATABASE shop2", "DROP USER 'copier'@'127.0.0.1'")


async def test_tables_that_have_no_snapshots(
    upstream: DatabaseServer, target: DatabaseServer
) -> None:
    upstream.execute(
        "CREATE DATABASE shop2", "CREATE TABLE shop2.t1 (id INT PRIMARY KEY) ENGINE=MyISAM"
    )
    try:
        followed = routed(address(upstream), schema="shop2")
        assert not [r for r in await check_source(followed) if r.name == "storage_engine"]
        both = replace(followed, copies_rows=True)
        found = one(await check_source(both), "storage_engine", "warning")
        assert "shop2.t1 have no consistent snapshots (engine MyISAM)" in found.finding
        copied = replace(both, reads_binlog=False)
        assert "MyISAM" in one(await check_source(copied), "storage_engine", "passed").finding
        wanted = task(both, target=target, task_mode="all")
        assert "InnoDB in place of MyISAM" in (
            one(await check_structures(wanted), "table_schema", "passed").finding
        )
        target.execute("CREATE TABLE merged.t (id INT PRIMARY KEY) ENGINE=MyISAM")
        result = one(await check_structures(wanted), "storage_engine", "warning")
        target.execute(result.ways_out[0])
        results = await check_structures(wanted)
        assert not [r for r in results if r.name == "storage_engine"]
        upstream.execute(found.ways_out[0])
        assert one(await check_source(both), "storage_engine", "passed")
    finally:
        upstream.execute("DROP DATABASE shop2")


async def test_a_target_table_that_may_not_be_written(
    upstream: DatabaseServer, target: DatabaseServer
) -> None:
    target.execute(
        "CREATE TABLE merged.t (id INT PRIMARY KEY, a VARCHAR(10))",
        "CREATE TRIGGER merged.tr AFTER INSERT ON merged.t FOR EACH ROW SET @x = 1",
        "GRANT SELECT, TRIGGER ON merged.* TO 'looker'@'127.0.0.1' IDENTIFIED BY 'secret'",
    )
    wanted = task(routed(address(upstream)), target=target)
    looker = replace(wanted.target, address=address(target, "looker", "secret"))
    results = await check_structures(replace(wanted, target=looker))
    assert failures(results) == {"target_privilege"}
    assert "tr" in one(results, "target_keys", "passed").finding


async def test_a_whole_task(upstream: DatabaseServer, target: DatabaseServer) -> None:
    away = DatabaseAddress("nowhere.invalid", 3306, "root")
    sources = (routed(address(upstream)), routed(away, source_id="b"))
    results = await run_checks(task(*sources, target=target), frozenset({"version", "wrong"}))
    assert {(r.name, r.where) for r in results if r.state == "failed"} == {("connection", "b")}
    one(results, "ignore-checking-items", "warning")
    assert not [r for r in results if r.name == "version"]
    one(results, "table_schema", "passed")
    resumed = await run_checks(task(*sources, target=target, resuming=True), frozenset())
    assert not [r for r in resumed if r.name == "table_schema"]


async def test_all_leaves_everything_out() -> None:
    away = DatabaseAddress("nowhere.invalid", 3306, "root")
    wanted = TaskToCheck((routed(away),), TargetToCheck(away, "dm_meta", "merge"))
    assert await run_checks(wanted, frozenset({"all"})) == []
    results = await run_checks(wanted, frozenset({"connection"}))
    assert {(r.name, r.where) for r in results} == {("connection", "a"), ("connection", "target")}
