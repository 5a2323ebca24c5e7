"""What servers write in a way of their own: settings, engines, statements, large events."""

from __future__ import annotations

from typing import Any

import pytest

from replicator.binlog.connection.server_info import ServerInfo, server_info
from replicator.binlog.errors import UnsupportedEventError
from replicator.binlog.events.event_header import EventType
from replicator.sandbox.server import DatabaseServer
from tests.support.streams.binlog_streams import following, here, read_to, row_events, statements

LONG = "x" * 500


def test_compressed_statements_and_rows_come_like_others(
    mariadb: DatabaseServer, database_name: str
) -> None:
    mariadb.execute("SET GLOBAL log_bin_compress = 1", "SET GLOBAL log_bin_compress_min_len = 10")
    try:
        start = here(mariadb)
        mariadb.execute(
            f"CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(600) DEFAULT '{LONG}')",
            f"INSERT INTO t VALUES (1, '{LONG}')",
            "UPDATE t SET id = 2",
            "DELETE FROM t",
            database=database_name,
        )
        end = here(mariadb)
    finally:
        mariadb.execute(
            "SET GLOBAL log_bin_compress = 0", "SET GLOBAL log_bin_compress_min_len = DEFAULT"
        )
    with following(mariadb, start, database_name) as stream:
        segments = read_to(stream, end)
    assert LONG in statements(segments)[0]
    assert [kind for _, kind, _, _ in row_events(segments)] == [
        EventType.MARIADB_WRITE_ROWS_COMPRESSED,
        EventType.MARIADB_UPDATE_ROWS_COMPRESSED,
        EventType.MARIADB_DELETE_ROWS_COMPRESSED,
    ]


def test_checksums_are_switched_while_reading(source: DatabaseServer, database_name: str) -> None:
    source.execute("CREATE TABLE t (id INT PRIMARY KEY)", database=database_name)
    start = here(source)
    ends = []
    try:
        for number, algorithm in enumerate(("NONE", "CRC32", "NONE")):
            source.execute(f"SET GLOBAL binlog_checksum = {algorithm}")
            source.execute(f"INSERT INTO t VALUES ({number})", database=database_name)
            ends.append(here(source))
        sizes = set()
        for first in (start, ends[0], ends[1]):
            with following(source, first, database_name) as stream:
                segments = read_to(stream, ends[-1])
            sizes |= {len(segment.rows[1].split()[0]) for segment in segments}
            assert len(row_events(segments)) == 3 - [start, *ends].index(first)
    finally:
        source.execute("SET GLOBAL binlog_checksum = CRC32")
    assert len(sizes) == 1, "no checksum is left in an event, nothing else is cut off"


@pytest.mark.parametrize("algorithm", ["NONE", "CRC32"])
def test_checksums_are_switched_while_a_stream_is_opened(
    source: DatabaseServer, database_name: str, monkeypatch: pytest.MonkeyPatch, algorithm: str
) -> None:
    source.execute("CREATE TABLE t (id INT PRIMARY KEY)", database=database_name)
    former = "CRC32" if algorithm == "NONE" else "NONE"
    source.execute(f"SET GLOBAL binlog_checksum = {former}")
    start = here(source)

    def ask_and_switch(asked: Any) -> ServerInfo:
        info = server_info(asked)
        source.execute(f"SET GLOBAL binlog_checksum = {algorithm}")
        return info

    monkeypatch.setattr("replicator.binlog.connection.dump_connection.server_info", ask_and_switch)
    try:
        with following(source, start, database_name) as stream:
            source.execute("INSERT INTO t VALUES (1)", database=database_name)
            segments = read_to(stream, here(source))
    finally:
        source.execute("SET GLOBAL binlog_checksum = CRC32")
    assert len(row_events(segments)) == 1


def test_tables_without_transactions(source: DatabaseServer, database_name: str) -> None:
    source.execute("CREATE TABLE m (id INT) ENGINE=MyISAM", database=database_name)
    start = here(source)
    source.execute("INSERT INTO m VALUES (1)", "INSERT INTO m VALUES (2)", database=database_name)
    end = here(source)
    with following(source, start, database_name) as stream:
        segments = read_to(stream, end)
    assert [ordinal for _, _, _, ordinal in row_events(segments)] == [1, 1]
    assert segments[-1].end == end


def test_rows_that_could_not_be_rolled_back_are_refused(
    mariadb: DatabaseServer, database_name: str
) -> None:
    mariadb.execute(
        "CREATE TABLE m (id INT) ENGINE=MyISAM", "CREATE TABLE t (id INT)", database=database_name
    )
    start = here(mariadb)
    mariadb.execute(
        "BEGIN",
        "INSERT INTO t VALUES (1)",
        "SAVEPOINT s",
        "INSERT INTO t VALUES (2)",
        "INSERT INTO m VALUES (1)",
        "ROLLBACK TO SAVEPOINT s",
        "COMMIT",
        database=database_name,
    )
    end = here(mariadb)
    with (
        following(mariadb, start, database_name) as stream,
        pytest.raises(UnsupportedEventError, match="rolled back in part"),
    ):
        read_to(stream, end)
    with following(mariadb, start, "another_schema") as stream:
        assert read_to(stream, end) == []


def test_rows_that_are_logged_as_statements_come_as_statements(
    source: DatabaseServer, database_name: str
) -> None:
    source.execute("CREATE TABLE t (id INT PRIMARY KEY)", database=database_name)
    start = here(source)
    source.execute(
        "SET SESSION binlog_format = 'STATEMENT'",
        "SET SESSION time_zone = '+03:00'",
        "BEGIN",
        "INSERT INTO t VALUES (1)",
        "COMMIT",
        database=database_name,
    )
    end = here(source)
    with following(source, start, database_name) as stream:
        segments = read_to(stream, end)
    (segment,) = segments
    assert statements(segments) == ["INSERT INTO t VALUES (1)"]
    assert not segment.complete
    assert segment.end == start


def test_create_table_select_is_a_statement_and_its_rows(
    mariadb: DatabaseServer, database_name: str
) -> None:
    mariadb.execute(
        "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)", database=database_name
    )
    start = here(mariadb)
    mariadb.execute("CREATE TABLE c SELECT * FROM t", database=database_name)
    end = here(mariadb)
    with following(mariadb, start, database_name) as stream:
        segments = read_to(stream, end)
    first, second = segments
    assert first.statement
    assert first.statement.sql.startswith("CREATE TABLE `c`")
    assert not first.complete
    assert first.end == start
    assert row_events([second]) == [("c", EventType.WRITE_ROWS_V1, first.statement.transaction, 1)]
    assert second.end == end


def test_rows_logged_with_their_statement(mariadb: DatabaseServer, database_name: str) -> None:
    mariadb.execute("CREATE TABLE t (id INT PRIMARY KEY)", database=database_name)
    start = here(mariadb)
    mariadb.execute(
        "SET SESSION binlog_annotate_row_events = 1",
        "INSERT INTO t VALUES (1)",
        "INSERT INTO t VALUES (2)",
        database=database_name,
    )
    end = here(mariadb)
    with following(mariadb, start, database_name) as stream:
        segments = read_to(stream, end)
    assert len(row_events(segments)) == 2
    assert segments[-1].end == end


def test_an_alter_written_in_two_halves_comes_once(
    mariadb: DatabaseServer, database_name: str
) -> None:
    mariadb.execute("CREATE TABLE t (id INT PRIMARY KEY)", database=database_name)
    start = here(mariadb)
    mariadb.execute(
        "SET SESSION binlog_alter_two_phase = 1", "ALTER TABLE t ADD a INT", database=database_name
    )
    end = here(mariadb)
    with following(mariadb, start, database_name) as stream:
        segments = read_to(stream, end)
    assert statements(segments) == ["ALTER TABLE t ADD a INT"]
    assert segments[-1].end == end


def test_an_event_of_many_packets(mariadb: DatabaseServer, database_name: str) -> None:
    mariadb.execute("CREATE TABLE t (id INT PRIMARY KEY, a LONGBLOB)", database=database_name)
    start = here(mariadb)
    size = 36_000_000
    mariadb.execute(f"INSERT INTO t VALUES (1, REPEAT('y', {size}))", database=database_name)
    end = here(mariadb)
    with following(mariadb, start, database_name) as stream:
        segments = read_to(stream, end)
    (event,) = segments[0].rows[1].split()
    assert event.count(b"y") >= size
