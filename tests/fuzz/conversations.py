"""Recordings of readings of a small workload, from each kind of server."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from pymysql.connections import Connection
from pymysql.cursors import Cursor

from replicator.binlog.positions.gtid import GtidStart
from replicator.binlog.positions.position import SourcePosition
from replicator.mysql.server.identity import IDENTITY_SQL, ServerIdentity
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.fuzz.reading import PASSWORD, USER, Reading, reader
from tests.fuzz.recording import Recorder, Recording
from tests.support.servers.mariadb11 import MariaDB11Server
from tests.support.servers.mysql import MySQLServer
from tests.support.servers.mysql56 import GTID_OPTIONS, MySQL56Server
from tests.support.streams.binlog_streams import here

KINDS: Mapping[str, Callable[[], DatabaseServer]] = {
    "mariadb": lambda: MariaDBServer({"binlog_row_metadata": "FULL"}),
    "mysql56": lambda: MySQL56Server(GTID_OPTIONS),
    "mysql": MySQLServer,
    "mariadb11": MariaDB11Server,
}
"""The kinds of sources, by the names that the command line has for them."""
BIG = 200_000
"""Bytes of the largest row: it comes in several pieces."""
_PREPARED_SINCE = {"mariadb", "mysql", "mariadb11"}
"""Whose binlogs have prepared XA transactions."""


def record(server: DatabaseServer, kind: str, *, checksums: bool, by_gtid: bool) -> Recording:
    """Have the server do the workload, and a reader follow it from the middle on."""
    schema = f"fuzz_{uuid.uuid4().hex[:8]}"
    name = f"{kind}-{'crc32' if checksums else 'plain'}-{'gtid' if by_gtid else 'file'}"
    _create_account(server)
    with _checksums(server, on=checksums), server.connect() as prepared:
        server.execute(f"CREATE DATABASE {schema}")
        first = here(server)
        _before(server, schema, prepared, xa=kind in _PREPARED_SINCE)
        middle = here(server).binlog.key
        start = _start(server, schema, first, middle, by_gtid=by_gtid)
        _after(server, schema, prepared, xa=kind in _PREPARED_SINCE)
        _compressed(server, schema, kind)
        end = here(server).binlog.key
        identity = ServerIdentity.told(server.execute(IDENTITY_SQL))
        with Recorder(server.port) as line:
            reading = Reading()
            with reader(line.port, start, schema, identity, timeout=10.0) as stream:
                # A heartbeat behind the end: nothing more was there to come.
                while not (reading.boundary.key >= end and reading.caught_up):
                    reading.add(stream.read_segment())
        server.execute(f"DROP DATABASE {schema}")
    return Recording(name, schema, start, end, identity, checksums, tuple(line.connections))


def _create_account(server: DatabaseServer) -> None:
    if server.execute(f"SELECT 1 FROM mysql.user WHERE user = '{USER}'"):
        server.execute(f"DROP USER {USER}@'127.0.0.1'")
    server.execute(
        f"CREATE USER {USER}@'127.0.0.1' IDENTIFIED BY '{PASSWORD}'",
        f"GRANT ALL ON *.* TO {USER}@'127.0.0.1'",
    )


@contextmanager
def _checksums(server: DatabaseServer, *, on: bool) -> Iterator[None]:
    ((before,),) = server.execute("SELECT @@global.binlog_checksum")
    server.execute(f"SET GLOBAL binlog_checksum = {'CRC32' if on else 'NONE'}")
    try:
        yield
    finally:
        server.execute(f"SET GLOBAL binlog_checksum = {before}")


def _start(
    server: DatabaseServer, schema: str, first: SourcePosition, middle: int, *, by_gtid: bool
) -> SourcePosition | GtidStart:
    """Where a reader goes on that has read so far: with an anchor event, and what is prepared."""
    reading = Reading()
    with reader(server.port, first, schema, None, timeout=10.0) as stream:
        while reading.boundary.key < middle:
            reading.add(stream.read_segment())
    place = reading.end
    assert isinstance(place, SourcePosition)
    return GtidStart(place.gtid, place.anchor, place.prepared) if by_gtid else place


def _before(server: DatabaseServer, schema: str, prepared: Connection[Cursor], *, xa: bool) -> None:
    server.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(200), b LONGTEXT) CHARSET utf8mb4",
        "CREATE TABLE u (id BIGINT UNSIGNED PRIMARY KEY, d DECIMAL(20,5), w DATETIME(3)"
        " DEFAULT '2020-02-02 02:02:02.020')",
        "CREATE TABLE bag (a INT, b VARCHAR(200))",
        "INSERT INTO t VALUES (1, 'first', NULL)",
        database=schema,
    )
    if xa:
        with prepared.cursor() as cursor:
            cursor.execute(f"USE {schema}")
            for sql in (
                f"XA START '{schema}-early'",
                "INSERT INTO u (id, d) VALUES (900, 9.5), (901, 8.5)",
                f"XA END '{schema}-early'",
                f"XA PREPARE '{schema}-early'",
            ):
                cursor.execute(sql)
    server.execute("INSERT INTO bag VALUES (1, 'x')", database=schema)


def _after(server: DatabaseServer, schema: str, prepared: Connection[Cursor], *, xa: bool) -> None:
    rows = ",".join(f"({i}, 'row {i}', 'é')" for i in range(10, 60))
    server.execute(
        "BEGIN",
        f"INSERT INTO t VALUES {rows}",
        "INSERT INTO u (id, d) VALUES (1, 1.5), (2, 2.5)",
        "UPDATE t SET a = 'other' WHERE id < 30",
        "DELETE FROM t WHERE id = 40",
        "COMMIT",
        "INSERT INTO bag VALUES (1, 'x'), (1, 'x'), (2, NULL)",
        "DELETE FROM bag WHERE a = 1 LIMIT 1",
        "ALTER TABLE t ADD c INT DEFAULT 5",
        "INSERT INTO t (id, a, c) VALUES (200, 'with c', 1)",
        database=schema,
    )
    if xa:
        with prepared.cursor() as cursor:
            cursor.execute(f"XA COMMIT '{schema}-early'")
    for outcome in ("COMMIT", "ROLLBACK"):
        name = f"{schema}-{outcome.lower()}"
        server.execute(
            f"XA START '{name}'",
            f"INSERT INTO u (id) VALUES ({3 if outcome == 'COMMIT' else 4})",
            f"XA END '{name}'",
            f"XA PREPARE '{name}'",
            f"XA {outcome} '{name}'",
            "UPDATE u SET d = 3.25 WHERE id = 1",
            database=schema,
        )
    server.execute(
        "FLUSH BINARY LOGS",
        "BEGIN",
        f"INSERT INTO t (id, b) VALUES (300, REPEAT('b', {BIG}))",
        "UPDATE u SET id = id + 1000 ORDER BY id DESC",
        "COMMIT",
        "CREATE TABLE later LIKE bag",
        "INSERT INTO later VALUES (5, 'later')",
        "TRUNCATE bag",
        "DROP TABLE later",
        "INSERT INTO bag VALUES (7, 'last but for those that are compressed')",
        database=schema,
    )


def _compressed(server: DatabaseServer, schema: str, kind: str) -> None:
    rows = (
        "BEGIN",
        "INSERT INTO t (id, a) VALUES (400, REPEAT('z', 190))",
        "INSERT INTO bag SELECT id, a FROM t WHERE a IS NOT NULL",
        "COMMIT",
    )
    if kind == "mysql":
        server.execute("SET binlog_transaction_compression = ON", *rows, database=schema)
    elif kind != "mysql56":
        server.execute("SET GLOBAL log_bin_compress = ON")
        server.execute(*rows, database=schema)
        server.execute("SET GLOBAL log_bin_compress = OFF")
    server.execute("INSERT INTO bag VALUES (8, 'last')", database=schema)
