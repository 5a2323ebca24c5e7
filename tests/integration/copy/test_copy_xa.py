"""Reading shards at a known place of the binlog while XA transactions are committed there."""

from __future__ import annotations

import select
import threading
import time
from bisect import bisect_right
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
from pymysql.constants import ER
from pymysql.err import OperationalError

from replicator.binlog.positions.position import BinlogPosition
from replicator.downstream.rows.target_columns import TargetTable
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.errors import error_code
from replicator.mysql.names import TableName
from replicator.pipeline.copy.copy_chunk import source_snapshot
from replicator.pipeline.copy.copy_plan import TableCopy
from replicator.pipeline.copy.source_stream import SourceStream
from replicator.sandbox.server import DatabaseServer
from tests.support.streams.binlog_streams import here

SECONDS = 15.0
"""So long snapshots are taken: without care a thousand, of which about five are wrong."""


def address_of(server: DatabaseServer) -> DatabaseAddress:
    return DatabaseAddress(server.host, server.port, server.user, server.password)


@pytest.fixture
def copy(mariadb_source: DatabaseServer, database_name: str) -> TableCopy:
    """Of a table without a key."""
    mariadb_source.execute(
        f"CREATE DATABASE {database_name}", f"CREATE TABLE {database_name}.t (n INT)"
    )
    return TableCopy(
        source="a",
        schema=database_name,
        table="t",
        fingerprint="",
        target=TargetTable(0, database_name, "t", 1, replace=False),
        selected=(b"*",),
        columns=(),
        key_name="",
        key=(),
        transcodes=(),
        exact=True,
        transactional=True,
        read_from=TableName(database_name, "t"),
    )


def commit_on_and_on(server: DatabaseServer, table: str, name: str, stop: threading.Event) -> None:
    """One XA transaction after the other, of one row each."""
    with server.connect() as connection, connection.cursor() as cursor:
        while not stop.is_set():
            for statement in (
                "START",
                f"INSERT INTO {table} VALUES (1)",
                "END",
                "PREPARE",
                "COMMIT",
            ):
                word = statement.partition(" ")[0]
                cursor.execute(statement if word == "INSERT" else f"XA {statement} '{name}'")


def rows_at_a_place(address: DatabaseAddress, copy: TableCopy) -> tuple[int, int] | None:
    """The place's key, and how many rows were seen; None where writers kept us out."""
    try:
        with source_snapshot(address, copy, True) as (stream, read_at):
            ((rows,),) = stream.rows(b"SELECT COUNT(*) FROM " + copy.name)
            return read_at, int(rows)
    except OperationalError as error:
        if error_code(error) != ER.LOCK_WAIT_TIMEOUT:
            raise
        return None


@pytest.mark.slow
def test_a_snapshot_has_what_was_committed_before_its_place(
    mariadb_source: DatabaseServer, copy: TableCopy
) -> None:
    server, stop = mariadb_source, threading.Event()
    table = copy.read_from.quoted
    server.execute("FLUSH BINARY LOGS")
    file = here(server).binlog.file
    seen = []
    with ThreadPoolExecutor(3) as threads:
        done = [threads.submit(commit_on_and_on, server, table, name, stop) for name in "abc"]
        try:
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                seen.append(rows_at_a_place(address_of(server), copy))
        finally:
            stop.set()
        for each in done:
            each.result()
    events = server.execute(f"SHOW BINLOG EVENTS IN '{file}'")
    ends = [BinlogPosition(file, e[4]).key for e in events if "XA COMMIT" in str(e[5])]
    taken = [found for found in seen if found is not None]
    assert len(taken) > 10
    wrong = [(at, rows) for at, rows in taken if bisect_right(ends, at) != rows]
    assert not wrong, f"{len(wrong)} of {len(taken)}"


def test_a_place_is_exact_only_while_no_xa_transaction_can_be_committed(
    mariadb_source: DatabaseServer, copy: TableCopy
) -> None:
    stream = SourceStream(address_of(mariadb_source))

    def exact() -> bool:
        place = stream.begin_snapshot()
        assert place is not None
        stream.run(b"COMMIT")
        return place.exact

    table = copy.read_from.quoted
    with mariadb_source.connect() as session, session.cursor() as cursor:

        def run(*statements: str) -> None:
            for statement in statements:
                cursor.execute(statement)

        begin = ("XA START 'a'", f"INSERT INTO {table} VALUES (1)", "XA END 'a'")
        run(*begin, "XA COMMIT 'a' ONE PHASE", *begin)
        assert exact()
        run("XA PREPARE 'a'")
        assert not exact()
        run("XA COMMIT 'a'")
    assert exact()
    stream.close()


def test_a_connection_that_the_server_closed_meanwhile_is_not_used_again(
    mariadb_source: DatabaseServer, copy: TableCopy
) -> None:
    address = address_of(mariadb_source)
    with source_snapshot(address, copy, True) as (stream, _):
        ((thread,),) = stream.rows(b"SELECT CONNECTION_ID()")
        channel = cast(Any, stream._connection)._sock
    mariadb_source.execute(f"KILL {int(thread)}")
    assert select.select([channel], [], [], 30)[0], "the server closes the connection"
    with source_snapshot(address, copy, True) as (stream, _):
        ((other,),) = stream.rows(b"SELECT CONNECTION_ID()")
    assert other != thread
