"""Going on in a binlog only where it is the one that was read before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replicator.binlog.errors import OtherBinlogError, OtherNamesError, OtherServerError
from replicator.binlog.positions.gtid import GtidStart
from replicator.binlog.positions.position import SourcePosition
from replicator.mysql.server.identity import ServerIdentity
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.conftest import StartServer
from tests.support.servers.clock import next_second
from tests.support.servers.faulty_proxy import FaultyLine
from tests.support.servers.mariadb11 import MariaDB11Server
from tests.support.servers.mysql import MySQLServer
from tests.support.servers.mysql56 import GTID_OPTIONS, MySQL56Server
from tests.support.streams.binlog_streams import following, here, read_to, row_events

KINDS: dict[str, type[DatabaseServer]] = {
    "mariadb": MariaDBServer,
    "mariadb11": MariaDB11Server,
    "mysql56": MySQL56Server,
    "mysql": MySQLServer,
}
SLOW_MARIADB11 = [
    pytest.param(kind, marks=[pytest.mark.slow] if kind == "mariadb11" else []) for kind in KINDS
]
"""MariaDB 11 tells what it is as MariaDB 10 does, and takes long to start."""
TABLE = "CREATE TABLE s.t (id INT PRIMARY KEY AUTO_INCREMENT, a VARCHAR(20))"
RESET = {"mysql": "RESET BINARY LOGS AND GTIDS"}


def options(kind: str, server_id: int) -> dict[str, str | None]:
    gtids = GTID_OPTIONS if kind == "mysql56" else {}
    return {**gtids, "server_id": str(server_id)}


def begin(server: DatabaseServer, rows: int = 1) -> None:
    server.execute("CREATE DATABASE s", TABLE)
    for _ in range(rows):
        server.execute("INSERT INTO s.t (a) VALUES ('x')")


def start(server: DatabaseServer) -> SourcePosition:
    """A place that GTIDs are known at."""
    server.execute("CREATE DATABASE first")
    return here(server)


def read_all(server: DatabaseServer, start: SourcePosition | GtidStart) -> SourcePosition:
    """Read up to the present end; the place to go on from."""
    with following(server, start, "s") as stream:
        end = here(server)
        while True:
            segment = stream.read_segment()
            if segment.end.binlog.key >= end.binlog.key:
                return segment.end


def identity_of(server: DatabaseServer) -> ServerIdentity:
    found = dict(server.execute("SHOW GLOBAL VARIABLES LIKE 'server\\_%id'"))
    return ServerIdentity(int(str(found["server_id"])), str(found.get("server_uuid", "")))


def starts(end: SourcePosition) -> list[SourcePosition | GtidStart]:
    return [end, replace(end, gtid=""), GtidStart(end.gtid, end.anchor)]


@pytest.mark.parametrize("kind", KINDS)
def test_it_goes_on_behind_its_anchor(kind: str, start_server: StartServer) -> None:
    server = start_server(KINDS[kind], options(kind, 7))
    before = start(server)
    begin(server)
    end = read_all(server, before)
    assert end.anchor is not None
    # Nothing that a server may change is taken for another binlog.
    server.execute("SET GLOBAL binlog_checksum = NONE")
    server.execute("INSERT INTO s.t (a) VALUES ('y')")
    for place in starts(end):
        with following(server, place, "s", expected=identity_of(server)) as stream:
            assert len(row_events(read_to(stream, here(server)))) == 1
    server.stop()
    server.start()
    later = read_all(server, end)
    assert read_all(server, later) == later


@pytest.mark.parametrize("kind", SLOW_MARIADB11)
def test_a_binlog_that_was_begun_anew_is_not_read(kind: str, start_server: StartServer) -> None:
    server = start_server(KINDS[kind], options(kind, 7))
    before = start(server)
    begin(server)
    end = read_all(server, before)
    next_second()
    # As long as the former one: the position and the GTIDs are there again.
    server.execute("DROP DATABASE s", "DROP DATABASE first", RESET.get(kind, "RESET MASTER"))
    start(server)
    begin(server, rows=20)
    assert here(server).binlog.key > end.binlog.key
    for place in starts(end):
        with (
            pytest.raises(OtherBinlogError, match="binlog was reset"),
            following(server, place, "s", expected=identity_of(server)),
        ):
            pass
    server.execute(RESET.get(kind, "RESET MASTER"))
    with pytest.raises(OtherBinlogError), following(server, end, "s"):
        pass


@pytest.mark.parametrize("kind", SLOW_MARIADB11)
def test_another_server_under_the_address_is_not_read(kind: str, start_server: StartServer) -> None:
    one = start_server(KINDS[kind], options(kind, 7))
    next_second()
    other = start_server(KINDS[kind], options(kind, 7))
    before = start(one)
    begin(one)
    start(other)
    begin(other, rows=20)
    end = read_all(one, before)
    identity = identity_of(one)
    error = OtherServerError if identity.server_uuid else OtherBinlogError
    with FaultyLine(one.port) as line:
        with following(one, end, "s", port=line.port, expected=identity):
            pass
        line.switch(other.port)
        for place in starts(end):
            with (
                pytest.raises(error),
                following(one, place, "s", port=line.port, expected=identity),
            ):
                pass


def test_a_server_that_takes_other_names_for_one_is_not_read(start_server: StartServer) -> None:
    server = start_server(MariaDBServer, {"server_id": "7", "lower_case_table_names": "1"})
    with following(server, here(server), "s", expected=ServerIdentity(7, "", True)):
        pass
    with (
        pytest.raises(OtherNamesError, match="without their case"),
        following(server, here(server), "s", expected=ServerIdentity(7, "", False)),
    ):
        pass


def test_another_server_id_is_another_server(start_server: StartServer) -> None:
    server = start_server(MariaDBServer, {"server_id": "7"})
    with (
        pytest.raises(OtherServerError, match=r"server_id 7.*server_id 8"),
        following(server, here(server), "s", expected=ServerIdentity(8, "")),
    ):
        pass
