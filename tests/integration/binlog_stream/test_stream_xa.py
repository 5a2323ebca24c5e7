"""XA transactions: their rows come with their outcome, wherever reading goes on from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from replicator.binlog.events.xa_events import UnknownTransactionError
from replicator.binlog.positions.position import SourcePosition
from replicator.binlog.segments.segment import Segment
from replicator.binlog.segments.segment_builder import SegmentLimits
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.conftest import StartServer
from tests.support.streams.binlog_streams import (
    EVERY_ROW,
    INSERTS,
    following,
    here,
    read_on,
    read_to,
    row_events,
    statements,
)

BOTH = pytest.mark.parametrize("source", ["mysql_source", "mariadb_source"], indirect=True)
ALL = pytest.mark.parametrize(
    "source",
    ["mysql_source", "mariadb_source", "mariadb11_source", "mysql56_source"],
    indirect=True,
)


@pytest.fixture
def source(request: pytest.FixtureRequest) -> DatabaseServer:
    server: DatabaseServer = request.getfixturevalue(request.param)
    return server


@pytest.fixture
def shard(source: DatabaseServer, database_name: str) -> Iterator[DatabaseServer]:
    """The source, with tables t and u in the database."""
    tables = [f"CREATE TABLE {name} (id INT PRIMARY KEY, v LONGBLOB)" for name in "tu"]
    source.execute(f"CREATE DATABASE {database_name}", f"USE {database_name}", *tables)
    yield source
    for kind, globally, _, name in source.execute("XA RECOVER"):
        parts = name[:globally], name[globally:]
        source.execute(f"XA ROLLBACK X'{parts[0].hex()}',X'{parts[1].hex()}',{kind}")


def xa(name: str, *statements: str) -> tuple[str, ...]:
    return (f"XA START {name}", *statements, f"XA END {name}", f"XA PREPARE {name}")


def read(
    server: DatabaseServer,
    start: SourcePosition,
    database_name: str,
    limits: SegmentLimits | None = None,
) -> list[Segment]:
    end = here(server)
    with following(server, start, database_name, limits=limits) as stream:
        return read_to(stream, end)


def tables_of(segments: list[Segment]) -> list[str]:
    return [table for table, *_ in row_events(segments)]


@ALL
def test_rows_come_where_they_are_committed(shard: DatabaseServer, database_name: str) -> None:
    start = here(shard)
    with shard.connect(database=database_name) as session, session.cursor() as cursor:
        changes = ("INSERT INTO t VALUES (1, 'x'), (2, 'y')", "DELETE FROM t")
        for statement in xa("'a','b',7", *changes):
            cursor.execute(statement)
        shard.execute("INSERT INTO u VALUES (1, 'between')", database=database_name)
        cursor.execute("XA COMMIT 'a','b',7")
    found = row_events(read(shard, start, database_name))
    assert [(table, ordinal) for table, _, _, ordinal in found] == [("u", 1), ("t", 1), ("t", 2)]
    assert len({transaction for _, _, transaction, _ in found}) == 2


@pytest.mark.parametrize("source", ["mysql_source"], indirect=True)
def test_names_whose_format_the_event_has_no_room_for(
    shard: DatabaseServer, database_name: str
) -> None:
    start = here(shard)
    names = [f"'a','{kind}',{kind}" for kind in (0, (1 << 31) + 5, 1 << 32, 1 << 40)]
    for number, name in enumerate(names):
        insert = f"INSERT INTO t VALUES ({number}, REPEAT('x', {number * 1000}))"
        shard.execute(*xa(name, insert), database=database_name)
    shard.execute(*(f"XA COMMIT {name}" for name in names))
    segments = read(shard, start, database_name)
    sizes = [
        len(event) for part in segments for rows in part.rows.values() for event in rows.split()
    ]
    assert len(sizes) == len(names)
    assert sizes == sorted(sizes)
    assert segments[-1].end.prepared == ()


@ALL
def test_rows_that_are_rolled_back_do_not_come(shard: DatabaseServer, database_name: str) -> None:
    start = here(shard)
    shard.execute(
        *xa("'a'", "INSERT INTO t VALUES (1, 'x')"),
        "XA ROLLBACK 'a'",
        "INSERT INTO u VALUES (1, 'behind')",
        database=database_name,
    )
    segments = read(shard, start, database_name)
    assert tables_of(segments) == ["u"]
    assert segments[-1].end.prepared == ()


@ALL
def test_one_phase(shard: DatabaseServer, database_name: str) -> None:
    start = here(shard)
    insert = "INSERT INTO t VALUES (1, 'x')"
    one_phase = ("XA START 'a'", insert, "XA END 'a'", "XA COMMIT 'a' ONE PHASE")
    shard.execute(*one_phase, "INSERT INTO u VALUES (1, 'x')", database=database_name)
    segments = read(shard, start, database_name)
    assert tables_of(segments) == ["t", "u"]
    assert segments[-1].end.prepared == ()


@BOTH
def test_reading_goes_on_between_prepare_and_commit(
    shard: DatabaseServer, database_name: str
) -> None:
    start = here(shard)
    insert = "INSERT INTO {} VALUES ({}, REPEAT('x', 100))"
    for number in range(3):
        shard.execute(
            *xa(f"'{number}'", insert.format("t", number), insert.format("t", number + 10)),
            database=database_name,
        )
    shard.execute(insert.format("u", 1), "FLUSH BINARY LOGS", database=database_name)
    first = read(shard, start, database_name)[-1]
    assert tables_of([first]) == ["u"]
    assert len(first.end.prepared) == 3
    shard.execute("XA COMMIT '1'", insert.format("u", 2), "XA ROLLBACK '2'", database=database_name)
    second = read(shard, first.end, database_name)
    assert tables_of(second) == ["t", "t", "u"]
    third = here(shard)
    with following(shard, second[-1].end, database_name) as stream:
        while (end := stream.read_segment().end).binlog.key < third.binlog.key:
            pass
    assert end.prepared == first.end.prepared[:1]
    shard.execute("XA COMMIT '0'")
    rest = read(shard, replace(third, prepared=end.prepared), database_name)
    assert tables_of(rest) == ["t", "t"]


@BOTH
def test_reading_goes_on_between_prepare_and_commit_without_checksums(
    shard: DatabaseServer, database_name: str
) -> None:
    ((before,),) = shard.execute("SELECT @@global.binlog_checksum")
    shard.execute("SET GLOBAL binlog_checksum = NONE")
    try:
        start = here(shard)
        shard.execute(*xa("'a'", "INSERT INTO t VALUES (1, 'x')"), database=database_name)
        shard.execute("INSERT INTO u VALUES (1, 'x')", database=database_name)
        first = read(shard, start, database_name)[-1]
        shard.execute("XA COMMIT 'a'")
        assert tables_of(read(shard, first.end, database_name)) == ["t"]
    finally:
        shard.execute(f"SET GLOBAL binlog_checksum = {before}")


@BOTH
def test_segments_are_cut_inside_the_rows_of_a_commit(
    shard: DatabaseServer, database_name: str
) -> None:
    start = here(shard)
    inserts = [f"INSERT INTO t VALUES ({number}, 'x')" for number in range(5)]
    shard.execute(*xa("'a'", *inserts), "XA COMMIT 'a'", database=database_name)
    segments = read(shard, start, database_name, EVERY_ROW)
    assert [segment.complete for segment in segments[:4]] == [False] * 4
    (cut,) = {segment.end for segment in segments[:4]}
    assert len(cut.prepared) == 1
    place = segments[1].rows[1].last
    end = here(shard)
    with following(shard, cut, database_name, resume_after=place) as stream:
        rest = read_to(stream, end)
    assert [ordinal for *_, ordinal in row_events(rest)] == [3, 4, 5]


@BOTH
def test_a_transaction_larger_than_what_is_kept_in_memory(
    shard: DatabaseServer, database_name: str
) -> None:
    start = here(shard)
    inserts = [f"INSERT INTO t VALUES ({n}, REPEAT('{n}', 3000000))" for n in range(4)]
    shard.execute(*xa("'a'", *inserts), database=database_name)
    middle = here(shard)
    shard.execute("XA COMMIT 'a'")
    assert len(row_events(read(shard, start, database_name))) == 4
    at = replace(middle, prepared=(start.binlog,))
    segments = read(shard, at, database_name)
    kinds = [kind for _, kind, *_ in row_events(segments)]
    assert [kind in INSERTS for kind in kinds] == [True] * 4


@BOTH
def test_statements_in_a_transaction_come_with_its_outcome(
    shard: DatabaseServer, database_name: str
) -> None:
    start = here(shard)
    statement_format = "SET binlog_format = STATEMENT"
    with shard.connect(database=database_name) as session, session.cursor() as cursor:
        for statement in (statement_format, *xa("'a'", "INSERT INTO t VALUES (1, 'x')")):
            cursor.execute(statement)
        shard.execute("CREATE TABLE w (id INT)", database=database_name)
        cursor.execute("XA COMMIT 'a'")
    found = statements(read(shard, start, database_name))
    assert [sql[:6] for sql in found] == ["CREATE", "INSERT"]


@BOTH
def test_a_commit_of_what_was_prepared_before_the_start(
    shard: DatabaseServer, database_name: str
) -> None:
    shard.execute(*xa("'a'", "INSERT INTO t VALUES (1, 'x')"), database=database_name)
    start = here(shard)
    shard.execute("XA COMMIT 'a'")
    with (
        following(shard, start, database_name) as stream,
        pytest.raises(UnknownTransactionError, match=r"X'61',X'',1 is committed at"),
    ):
        read_on(stream)


@pytest.mark.parametrize("source", ["mysql_source"], indirect=True)
@pytest.mark.parametrize("tag", ["AUTOMATIC", "AUTOMATIC:abc"])
def test_compressed_transactions(shard: DatabaseServer, database_name: str, tag: str) -> None:
    start = here(shard)
    settings = ("SET binlog_transaction_compression = 1", f"SET gtid_next = '{tag}'")
    insert = "INSERT INTO {} VALUES ({}, REPEAT('x', 100))"
    with shard.connect(database=database_name) as session, session.cursor() as cursor:
        for statement in (*settings, *xa("'a'", insert.format("t", 1), insert.format("t", 2))):
            cursor.execute(statement)
        middle = here(shard)
        for number in range(3):
            shard.execute(settings[0], insert.format("u", number), database=database_name)
        cursor.execute("XA COMMIT 'a'")
    one_phase = ("XA START 'a'", insert.format("t", 3), "XA END 'a'", "XA COMMIT 'a' ONE PHASE")
    shard.execute(*settings, *one_phase, database=database_name)
    expected = ["u", "u", "u", "t", "t", "t"]
    assert tables_of(read(shard, start, database_name)) == expected
    at = replace(middle, prepared=(start.binlog,))
    assert tables_of(read(shard, at, database_name)) == expected


def test_compressed_events_and_a_name_of_full_length(
    start_server: StartServer, database_name: str
) -> None:
    shortest = {"log_bin_compress": "1", "log_bin_compress_min_len": "10"}
    server = start_server(MariaDBServer, {**shortest, "log_bin": "a log"})
    server.execute(
        f"CREATE DATABASE {database_name}",
        f"CREATE TABLE {database_name}.t (id INT PRIMARY KEY, v TEXT)",
    )
    start = here(server)
    names = [f"X'{'fe' * 64}',X'{'00' * 64}',5", f"X'{'27' * 64}',X'{'00' * 63}01',0"]
    for number, name in enumerate(names):
        insert = f"INSERT INTO t VALUES ({number}, REPEAT('x', 1000))"
        server.execute(*xa(name, insert), database=database_name)
    middle = here(server)
    server.execute(f"XA COMMIT {names[0]}", f"XA ROLLBACK {names[1]}")
    segments = read(server, start, database_name)
    assert tables_of(segments) == ["t"]
    assert segments[-1].end.prepared == ()
    at = replace(middle, prepared=(start.binlog,))
    assert tables_of(read(server, at, database_name)) == ["t"]
