"""Servers from the packages of newer Debian suites: MySQL 9, MariaDB 11."""

from __future__ import annotations

import platform
import re
from pathlib import Path

import pymysql
import pytest

from replicator.sandbox.keeper import ServerUnavailableError
from replicator.sandbox.server import DatabaseServer
from tests.conftest import StartServer
from tests.support.servers import apt_sources
from tests.support.servers.listening import listening, process_of
from tests.support.servers.mariadb11 import MariaDB11Server
from tests.support.servers.mysql import MySQLServer
from tests.support.servers.packaged import PackagedServer

KINDS = [MySQLServer, MariaDB11Server]
FIXTURES = ["mysql_source", "mariadb11_source"]

WRITE_ROWS = "Write_rows"


@pytest.fixture(params=FIXTURES)
def packaged(request: pytest.FixtureRequest) -> DatabaseServer:
    server: DatabaseServer = request.getfixturevalue(request.param)
    return server


def version(server: DatabaseServer) -> tuple[int, ...]:
    [[text]] = server.execute("SELECT VERSION()")
    return tuple(int(part) for part in text.split("-")[0].split("."))


def binlog_event_types(server: DatabaseServer) -> list[str]:
    [[name, *_]] = [server.execute("SHOW BINARY LOGS")[-1]]
    assert re.fullmatch(r"binlog\.\d+", name)
    return [row[2] for row in server.execute(f"SHOW BINLOG EVENTS IN '{name}'")]


def test_they_are_of_the_versions_that_their_names_say(
    mysql_source: DatabaseServer, mariadb11_source: DatabaseServer
) -> None:
    assert version(mysql_source) >= (9,)
    assert (11,) <= version(mariadb11_source) < (12,)


def test_the_version_is_told_without_a_server(packaged: DatabaseServer) -> None:
    assert isinstance(packaged, PackagedServer)
    [[text]] = packaged.execute("SELECT VERSION()")
    told = packaged.package.fetched_version()
    assert told is not None
    assert told == packaged.package.version()
    # Debian's own may say more of it, such as 11.8.9+ds-0+deb13u1.
    assert re.split("[-+]", told)[0] == text.split("-")[0]


def test_they_write_rows_to_the_binlog(packaged: DatabaseServer, database_name: str) -> None:
    before = len(binlog_event_types(packaged))
    packaged.execute(
        f"CREATE DATABASE {database_name}",
        f"CREATE TABLE {database_name}.t (id INT PRIMARY KEY, name VARCHAR(20))",
        f"INSERT INTO {database_name}.t VALUES (1, 'é')",
    )
    assert packaged.execute("SELECT * FROM t", database=database_name) == ((1, "é"),)
    types = binlog_event_types(packaged)[before:]
    assert [name for name in types if name.startswith(WRITE_ROWS)] != []


def test_mysql_writes_gtids(mysql_source: DatabaseServer, database_name: str) -> None:
    modes = mysql_source.execute("SELECT @@gtid_mode, @@enforce_gtid_consistency")
    assert modes == (("ON", "ON"),)
    mysql_source.execute(f"CREATE DATABASE {database_name}")
    [[executed, uuid]] = mysql_source.execute("SELECT @@GLOBAL.gtid_executed, @@server_uuid")
    assert any(part.strip().startswith(f"{uuid}:1") for part in executed.split(","))


def test_root_may_do_everything(packaged: DatabaseServer, database_name: str) -> None:
    packaged.execute(
        f"CREATE USER '{database_name}'@'%' IDENTIFIED BY 'secret'",
        f"GRANT REPLICATION SLAVE ON *.* TO '{database_name}'@'%'",
    )
    login = packaged.connect(user=database_name, password="secret")
    with login as connection, connection.cursor() as cursor:
        cursor.execute("SELECT CURRENT_USER()")
        assert cursor.fetchone() == (f"{database_name}@%",)
    packaged.execute(f"DROP USER '{database_name}'@'%'")


def test_two_servers_of_a_kind_are_two(
    mysql_source: DatabaseServer, start_server: StartServer
) -> None:
    # All have a copy of one data folder.
    other = start_server(MySQLServer)
    ids = {
        server.execute("SELECT @@server_id, @@server_uuid")[0] for server in (mysql_source, other)
    }
    assert len({number for number, _ in ids}) == len({uuid for _, uuid in ids}) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_restart_and_kill_keep_port_and_data(
    start_server: StartServer, kind: type[DatabaseServer]
) -> None:
    server = start_server(kind)
    port, folder = server.port, server.folder
    server.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    server.execute("INSERT INTO d.t VALUES (1)")
    server.restart()
    server.execute("INSERT INTO d.t VALUES (2)")
    server.kill()
    server.start()
    assert server.execute("SELECT id FROM d.t ORDER BY id") == ((1,), (2,))
    assert (server.port, server.folder) == (port, folder)

    process = process_of(server)
    assert process.is_dir()
    server.close()
    assert not folder.exists()
    assert not process.exists()
    with pytest.raises(pymysql.err.OperationalError):
        pymysql.connect(host="127.0.0.1", port=port, user="root", connect_timeout=2)


def test_they_listen_on_their_port_of_this_machine_alone(packaged: DatabaseServer) -> None:
    assert listening(process_of(packaged)) == {("127.0.0.1", packaged.port)}


def test_without_a_mirror_the_error_says_where_it_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(apt_sources, "APT_FOLDER", tmp_path)
    with pytest.raises(ServerUnavailableError, match=re.escape(f"in {tmp_path} name no mirror")):
        MySQLServer().start()


def test_what_apt_says_of_a_mirror_that_does_not_answer_is_in_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(apt_sources, "APT_FOLDER", tmp_path)
    mirror = tmp_path / "no-such-mirror"
    (tmp_path / "sources.list").write_text(f"deb file:{mirror} stable main\n")
    with pytest.raises(ServerUnavailableError, match=r"(?s)sid: apt-get failed.*no-such-mirror"):
        MySQLServer().start()
    assert MySQLServer.package.fetched_version() is None


def test_without_apt_the_error_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ServerUnavailableError, match="with apt-get, which this machine lacks"):
        MariaDB11Server().start()


def test_other_machines_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(ServerUnavailableError, match="this machine is riscv64"):
        MariaDB11Server().start()
