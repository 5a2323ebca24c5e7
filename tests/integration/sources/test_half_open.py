"""Connections that are half open: noticed, without breaking off what only takes its time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import anyio
import pytest
from pymysql.err import MySQLError, OperationalError

from replicator.downstream.rows import write_session as sessions
from replicator.downstream.rows.load_data import load_blocks
from replicator.downstream.rows.target_columns import TargetColumn, TargetTable
from replicator.downstream.rows.write_session import Session, forget_session, session_for
from replicator.mysql.column_types import Literal
from replicator.mysql.connection import blocking_connection as blocking
from replicator.mysql.connection import liveness
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseUnavailableError
from replicator.mysql.errors import is_unavailable
from replicator.pipeline.copy.source_stream import SourceStream
from replicator.sandbox.server import DatabaseServer
from tests.support.servers.faulty_proxy import Fault, FaultyLine, Trap, Way

LOOK = 0.4
NOTICED = 8.0
"""Seconds: far less than the server may take to answer, far more than two looks."""
TAKES = 5
"""Seconds of a statement during which its line breaks."""
FREED = 40.0
"""TiDB keeps the locks of a thread that was ended for 20 s, MariaDB and MySQL for no time."""

CLEAR = (Fault.END, Fault.RESET, Fault.VANISH)
"""What a kernel tells of, or what is found out as a stall is."""
SLOW_TIDB = pytest.param("tidb_target", marks=pytest.mark.slow)
SLOW_MYSQL = pytest.param("mysql_source", marks=pytest.mark.slow)
EVERY_KIND = [
    "mariadb_target",
    "mysql_source",
    pytest.param("mariadb11_source", marks=pytest.mark.slow),
    pytest.param("mysql56_source", marks=pytest.mark.slow),
    SLOW_TIDB,
]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "LOOK_SECONDS", LOOK)
    monkeypatch.setattr(liveness, "QUIET_SECONDS", 1)


@pytest.fixture(params=EVERY_KIND)
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    found: DatabaseServer = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def line(server: DatabaseServer) -> Iterator[FaultyLine]:
    with FaultyLine(server.port) as line:
        yield line


@pytest.fixture
def address(server: DatabaseServer, line: FaultyLine) -> DatabaseAddress:
    return DatabaseAddress(server.host, line.port, server.user, server.password)


@pytest.fixture
def table(server: DatabaseServer, database_name: str) -> str:
    server.execute(
        f"CREATE DATABASE {database_name}", f"CREATE TABLE {database_name}.t (id INT PRIMARY KEY)"
    )
    return f"{database_name}.t"


def lost_within(seconds: float, session: Session, sql: bytes) -> None:
    began = time.monotonic()
    with pytest.raises(MySQLError) as caught:
        session.run(sql)
    assert is_unavailable(caught.value)
    assert time.monotonic() - began < seconds


@pytest.mark.parametrize("way", Way)
def test_a_commit_whose_way_or_answer_stalls(
    server: DatabaseServer, line: FaultyLine, address: DatabaseAddress, table: str, way: Way
) -> None:
    session = session_for(address)
    session.run(b"BEGIN")
    session.run(f"INSERT INTO {table} VALUES (1)".encode())
    line.set(Trap(way, Fault.STALL_THIS_WAY))
    lost_within(NOTICED, session, b"COMMIT")
    forget_session(address)
    # What it had locked is free, although the server has not heard of its end.
    again = session_for(address)
    began = time.monotonic()
    again.run(f"INSERT IGNORE INTO {table} VALUES (1)".encode())
    assert time.monotonic() - began < FREED
    forget_session(address)
    assert server.execute(f"SELECT * FROM {table}") == ((1,),)


@pytest.mark.parametrize("server", ["mariadb_target", "tidb_target"], indirect=True)
@pytest.mark.parametrize("fault", [Fault.END, Fault.RESET, Fault.VANISH])
def test_the_answer_to_a_commit_is_lost(
    server: DatabaseServer, line: FaultyLine, address: DatabaseAddress, table: str, fault: Fault
) -> None:
    session = session_for(address)
    session.run(b"BEGIN")
    session.run(f"INSERT INTO {table} VALUES (1)".encode())
    trap = line.set(Trap(Way.TO_SERVER, fault, b"COMMIT", answer=True))
    lost_within(NOTICED, session, b"COMMIT")
    assert trap.sprung.is_set()
    forget_session(address)
    assert server.execute(f"SELECT * FROM {table}") == ((1,),)


@pytest.mark.parametrize("server", ["mariadb_target", SLOW_TIDB], indirect=True)
def test_the_locks_of_a_session_that_the_server_takes_for_alive(
    server: DatabaseServer, line: FaultyLine, address: DatabaseAddress, table: str
) -> None:
    session = session_for(address)
    session.run(b"BEGIN")
    session.run(f"INSERT INTO {table} VALUES (1)".encode())
    # The client hears of the end, the server does not.
    line.break_all(Fault.STALL_THIS_WAY, Way.TO_SERVER)
    forget_session(address)
    began = time.monotonic()
    session_for(address).run(f"INSERT INTO {table} VALUES (1)".encode())
    forget_session(address)
    assert time.monotonic() - began < FREED


@pytest.mark.parametrize("server", ["mariadb_target"], indirect=True)
def test_locks_of_a_session_that_another_thread_has_closed(
    server: DatabaseServer, line: FaultyLine, address: DatabaseAddress, table: str
) -> None:
    with ThreadPoolExecutor(1) as other:
        session = other.submit(session_for, address).result()
        assert session is not session_for(address)
        forget_session(address)
        other.submit(session.run, b"BEGIN").result()
        other.submit(session.run, f"INSERT INTO {table} VALUES (1)".encode()).result()
        line.break_all(Fault.STALL_THIS_WAY, Way.TO_SERVER)
        other.submit(forget_session, address).result()
    began = time.monotonic()
    session_for(address).run(f"INSERT INTO {table} VALUES (1)".encode())
    forget_session(address)
    assert time.monotonic() - began < FREED


def test_a_handshake_that_does_not_come(
    line: FaultyLine, address: DatabaseAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocking, "CONNECT_TIMEOUT", 1)
    line.set(Trap(Way.TO_CLIENT, Fault.STALL))
    began = time.monotonic()
    with pytest.raises(OperationalError) as caught:
        Session(address)
    assert is_unavailable(caught.value)
    assert time.monotonic() - began < NOTICED


def test_a_statement_that_takes_its_time_is_left_alone(address: DatabaseAddress) -> None:
    session = Session(address)
    session.run(b"DO SLEEP(4)")
    session.close()


@pytest.mark.parametrize("server", ["mariadb_target", "tidb_target"], indirect=True)
def test_a_statement_that_waits_for_a_lock_is_left_alone(
    server: DatabaseServer, address: DatabaseAddress, table: str
) -> None:
    server.execute(f"INSERT INTO {table} VALUES (1)")
    session = Session(address)
    session.run(b"SET SESSION innodb_lock_wait_timeout=4")
    session.run(b"BEGIN")
    with server.connect(autocommit=False) as other, other.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table} FOR UPDATE")
        with pytest.raises(MySQLError) as caught:
            session.run(f"DELETE FROM {table}".encode())
    assert caught.value.args[0] == 1205
    session.close()


@pytest.mark.parametrize("server", ["mariadb_target", "tidb_target"], indirect=True)
def test_a_long_statement_on_a_slow_line_is_left_alone(
    line: FaultyLine, address: DatabaseAddress
) -> None:
    session = Session(address)
    line.bytes_per_second = 150_000.0
    # It is in buffers on its way for long after it was sent, and the thread waits for it.
    assert session.run(b"SET @a = '" + b"x" * 600_000 + b"'").affected == 0
    session.close()


@pytest.mark.parametrize("server", ["mariadb_target", SLOW_MYSQL], indirect=True)
@pytest.mark.parametrize("fault", [Fault.STALL, Fault.RESET, Fault.VANISH])
def test_a_load_that_breaks_in_mid_stream(
    server: DatabaseServer, line: FaultyLine, address: DatabaseAddress, table: str, fault: Fault
) -> None:
    server.execute("SET GLOBAL local_infile=1")
    # So long the server waits for the rest of a file.
    where = replace(address, session=(("net_read_timeout", "2"),))
    session = session_for(where)

    def blocks() -> Iterator[bytes]:
        for number in range(200):
            if number == 3:
                line.break_all(fault)
            yield b"".join(b"%d\n" % (number * 20_000 + row) for row in range(20_000))

    schema, name = table.split(".")
    target = TargetTable(0, schema, name, 1, replace=True)
    session.run(b"BEGIN")
    began = time.monotonic()
    with pytest.raises(OperationalError) as caught:
        load_blocks(session, target, [TargetColumn("id", Literal.NUMBER)], blocks(), b"")
    assert is_unavailable(caught.value)
    assert time.monotonic() - began < NOTICED
    forget_session(where)
    session_for(where).run(f"INSERT INTO {table} VALUES (1)".encode())
    forget_session(where)
    assert server.execute(f"SELECT * FROM {table}") == ((1,),)


@pytest.mark.parametrize(
    "server",
    ["mariadb_target", "mysql_source", pytest.param("mysql56_source", marks=pytest.mark.slow)],
    indirect=True,
)
@pytest.mark.parametrize(
    "fault", [Fault.STALL, *(pytest.param(f, marks=pytest.mark.slow) for f in CLEAR)]
)
def test_a_table_that_is_read_when_the_line_breaks(
    server: DatabaseServer, line: FaultyLine, address: DatabaseAddress, table: str, fault: Fault
) -> None:
    wide = table.replace(".t", ".wide")
    server.execute(
        f"CREATE TABLE {wide} (v LONGTEXT)",
        *[f"INSERT INTO {wide} VALUES (REPEAT('x', 1000000))"] * 30,
    )
    stream = SourceStream(address)
    blocks = stream.blocks(f"SELECT v FROM {wide}".encode())
    next(blocks)
    line.break_all(fault)
    began = time.monotonic()
    with pytest.raises(OperationalError) as caught:
        for _ in blocks:
            pass
    assert is_unavailable(caught.value)
    assert time.monotonic() - began < NOTICED
    stream.close()


@pytest.mark.parametrize(
    "fault", [Fault.STALL, *(pytest.param(f, marks=pytest.mark.slow) for f in CLEAR)]
)
async def test_a_long_statement_of_the_driver(
    server: DatabaseServer, line: FaultyLine, address: DatabaseAddress, fault: Fault
) -> None:
    connection = Connection(address)
    await connection.execute("DO SLEEP(3)", patience=3600)
    began = time.monotonic()
    async with anyio.create_task_group() as group:
        group.start_soon(_break_soon, line, fault)
        with pytest.raises(DatabaseUnavailableError):
            # As long as the server is at it, it is waited for.
            await connection.execute(f"DO SLEEP({TAKES})", patience=3600)
    assert time.monotonic() - began < TAKES + NOTICED
    assert await connection.fetch("SELECT 1") == [(1,)]
    connection.close()


@pytest.mark.parametrize("server", ["mariadb_target", SLOW_TIDB], indirect=True)
async def test_a_transaction_of_the_driver_lets_go_of_what_it_locks(
    server: DatabaseServer, line: FaultyLine, address: DatabaseAddress, table: str
) -> None:
    connection = Connection(address)
    for number in range(2):
        async with connection.transaction() as transaction:
            await transaction.fetch(f"INSERT INTO {table} VALUES (%s)", (number,))
    began = time.monotonic()
    with pytest.raises(DatabaseUnavailableError):
        await _stalled(connection, line, table)
    assert time.monotonic() - began < NOTICED
    async with connection.transaction() as transaction:
        await transaction.fetch(f"UPDATE {table} SET id = id + 10")
    assert time.monotonic() - began < FREED
    assert await connection.fetch(f"SELECT id FROM {table} ORDER BY id") == [(10,), (11,)]
    connection.close()


async def _stalled(connection: Connection, line: FaultyLine, table: str) -> None:
    async with connection.transaction() as transaction:
        await transaction.fetch(f"DELETE FROM {table} WHERE id = 1")
        line.break_all(Fault.STALL)
        await transaction.fetch(f"INSERT INTO {table} VALUES (2)")


async def _break_soon(line: FaultyLine, fault: Fault) -> None:
    await anyio.sleep(1)
    line.break_all(fault)


@pytest.mark.slow
@pytest.mark.parametrize("server", ["mariadb_target", "mysql_source"], indirect=True)
def test_a_load_whose_rows_come_slowly(
    server: DatabaseServer, address: DatabaseAddress, table: str
) -> None:
    """A server would wait 30 s for more of it."""
    server.execute("SET GLOBAL local_infile=1")
    session = Session(address)

    def blocks() -> Iterator[bytes]:
        yield b"1\n"
        time.sleep(35)
        yield b"2\n"

    schema, name = table.split(".")
    target = TargetTable(0, schema, name, 1, replace=True)
    load_blocks(session, target, [TargetColumn("id", Literal.NUMBER)], blocks(), b"")
    assert server.execute(f"SELECT id FROM {table} ORDER BY id") == ((1,), (2,))
    session.close()


@pytest.mark.slow
@pytest.mark.parametrize("server", ["mariadb_target", "mysql_source"], indirect=True)
def test_a_load_that_waits_for_a_lock_is_left_alone(
    server: DatabaseServer, address: DatabaseAddress, table: str
) -> None:
    """Longer than a kernel waits elsewhere for what was sent to be taken."""
    server.execute("SET GLOBAL local_infile=1", f"INSERT INTO {table} VALUES (-1)")
    session = Session(replace(address, session=(("innodb_lock_wait_timeout", "120"),)))
    rows = b"".join(b"%d\n" % n for n in range(-1, 2_000_000))
    schema, name = table.split(".")
    target = TargetTable(0, schema, name, 1, replace=True)
    with ThreadPoolExecutor(1) as thread:
        with server.connect(autocommit=False) as other, other.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {table} WHERE id = -1 FOR UPDATE")
            columns = [TargetColumn("id", Literal.NUMBER)]
            done = thread.submit(load_blocks, session, target, columns, [rows], b"REPLACE")
            time.sleep(liveness.VANISHED_SECONDS + 8)
        assert done.result().records >= 2_000_001
    session.close()


@pytest.mark.slow
@pytest.mark.parametrize("server", ["mariadb_target"], indirect=True)
def test_nobody_answers_any_more(
    line: FaultyLine, address: DatabaseAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel finds out by itself, where nobody can be asked."""
    monkeypatch.setattr(liveness, "VANISHED_SECONDS", 10)
    monkeypatch.setattr(liveness, "STALLED_SECONDS", 10)
    monkeypatch.setattr(liveness, "LOOK_SECONDS", 60.0)
    session = Session(address)
    line.break_all(Fault.VANISH)
    lost_within(20, session, b"SELECT 1")


@pytest.mark.parametrize("server", ["mariadb_target", "tidb_target"], indirect=True)
def test_sessions_that_are_not_used_are_opened_again(
    address: DatabaseAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = session_for(address)
    assert session_for(address) is session
    monkeypatch.setattr(sessions, "ABANDONED_SECONDS", 0)
    again = session_for(address)
    assert again is not session
    again.run(b"BEGIN")
    forget_session(address)
