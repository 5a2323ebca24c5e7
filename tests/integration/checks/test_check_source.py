"""Checks of a source: can it be reached, read and followed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from replicator.checks.source.source_checks import check_source
from replicator.mysql.connection.asyncio_connection import DatabaseAddress
from replicator.mysql.connection.tls import Pem, Tls
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer, reserved_port
from tests.conftest import StartServer
from tests.support.servers.certificates import make_authority
from tests.support.servers.mysql56 import MySQL56Server
from tests.support.tasks.checking import address, failures, global_setting, one, routed


async def test_a_source_that_is_ready_passes(upstream: DatabaseServer) -> None:
    results = await check_source(routed(address(upstream, "full", "secret")))
    assert failures(results) == set()
    passed = {r.name for r in results if r.state == "passed"}
    assert passed >= {"replication_privilege", "dump_privilege", "routes", "binlog_format"}


async def test_a_wrong_password_is_refused(upstream: DatabaseServer) -> None:
    results = await check_source(routed(address(upstream, "full", "wrong")))
    assert failures(results) == {"connection"}
    assert "refuses the login" in results[0].finding
    assert "wrong" not in str(results)


async def test_a_port_where_nothing_listens_is_named_so() -> None:
    with reserved_port("127.0.0.1") as kept:
        port = kept.getsockname()[1]
        results = await check_source(routed(DatabaseAddress("127.0.0.1", port, "root")))
    assert "nothing listens" in one(results, "connection", "failed").finding


async def test_an_unknown_host_is_named_so() -> None:
    results = await check_source(routed(DatabaseAddress("nowhere.invalid", 3306, "root")))
    assert "not known" in one(results, "connection", "failed").finding


async def test_tls_that_the_server_does_not_offer(mariadb: DatabaseServer, tmp_path: Path) -> None:
    certificate = tmp_path / "ca.pem"
    certificate.write_text(make_authority().certificate)
    where = replace(address(mariadb), tls=Tls(Pem(str(certificate))))
    results = await check_source(routed(where))
    assert "TLS" in one(results, "connection", "failed").finding
    missing = replace(address(mariadb), tls=Tls(Pem("/nowhere/ca.pem")))
    results = await check_source(routed(missing))
    assert "/nowhere/ca.pem" in one(results, "connection", "failed").remedies[0]


@pytest.mark.parametrize("kind", [MariaDBServer, MySQL56Server])
async def test_a_source_without_a_binlog_can_only_be_copied(
    kind: type[DatabaseServer], start_server: StartServer
) -> None:
    server = start_server(kind, {"log_bin": None, "skip_log_bin": None})
    server.execute("CREATE DATABASE shop", "CREATE TABLE shop.t1 (id INT PRIMARY KEY)")
    results = await check_source(routed(address(server)))
    assert failures(results) == {"binlog_enable"}
    copied_only = replace(routed(address(server)), reads_binlog=False)
    assert failures(await check_source(copied_only)) == set()


async def test_statements_in_the_binlog_are_refused(upstream: DatabaseServer) -> None:
    with global_setting(upstream, "binlog_format", "'STATEMENT'"):
        results = await check_source(routed(address(upstream)))
    assert failures(results) == {"binlog_format"}


async def test_minimal_row_images_are_refused(upstream: DatabaseServer) -> None:
    with global_setting(upstream, "binlog_row_image", "'MINIMAL'"):
        results = await check_source(routed(address(upstream)))
    assert failures(results) == {"binlog_row_image"}


async def test_a_binlog_without_checksums_is_warned_of(upstream: DatabaseServer) -> None:
    with global_setting(upstream, "binlog_checksum", "'NONE'"):
        results = await check_source(routed(address(upstream)))
    assert failures(results) == set()
    assert "CRC32" in one(results, "binlog_checksum", "warning").remedies[0]


async def test_a_missing_replication_privilege_is_named(upstream: DatabaseServer) -> None:
    results = await check_source(routed(address(upstream, "reader", "secret")))
    assert failures(results) == {"replication_privilege"}
    assert "REPLICATION SLAVE" in one(results, "replication_privilege", "failed").remedies[0]


async def test_a_missing_select_privilege_names_the_tables(upstream: DatabaseServer) -> None:
    results = await check_source(routed(address(upstream, "blind", "secret")))
    assert failures(results) == {"dump_privilege"}
    found = one(results, "dump_privilege", "failed")
    assert "shop.t1" in found.finding
    assert "GRANT SELECT ON `shop`.*" in found.remedies[0]


async def test_a_route_that_matches_nothing_names_the_nearest(upstream: DatabaseServer) -> None:
    results = await check_source(routed(address(upstream), table="tt1"))
    assert "shop.t1" in one(results, "routes", "warning").finding


async def test_nothing_is_replicated_yet(mariadb: DatabaseServer) -> None:
    results = await check_source(routed(address(mariadb)))
    assert "routes" not in failures(results)
    told = [result.finding for result in results if result.name == "routes"]
    assert "waits for tables to be created" in told[0]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (MariaDBServer, {"binlog_ignore_db": "shop"}),
        (MySQL56Server, {"binlog_ignore_db": "Shop", "lower_case_table_names": "1"}),
    ],
)
async def test_schemas_kept_out_of_the_binlog(
    start_server: StartServer, kind: type[DatabaseServer], options: dict[str, str]
) -> None:
    server = start_server(kind, options)
    server.execute("CREATE DATABASE shop", "CREATE TABLE shop.t1 (id INT PRIMARY KEY)")
    assert failures(await check_source(routed(address(server)))) == {"binlog_db"}
