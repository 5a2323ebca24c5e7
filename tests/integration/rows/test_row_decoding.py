"""Rows of every type, from a real server's binlog through `LOAD DATA` into an equal table."""

from __future__ import annotations

import os
import re
import threading
from dataclasses import dataclass, replace
from typing import Any

import pytest

from replicator.binlog.errors import BinlogError
from replicator.binlog.events.event_header import EventType
from replicator.binlog.events.table_map import TableMap
from replicator.mysql.column_types import ColumnType
from replicator.rows.decoder.block_decoder import BlockDecoder
from replicator.rows.decoder.reference_decoder import ReferenceDecoder
from replicator.rows.decoder.row_block import RowChange
from replicator.rows.values.charsets import codec, encode_label
from replicator.rows.values.column_format import ColumnFormat, RowFormat
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.support.streams.binlog_file import row_events
from tests.support.streams.row_blocks import RowImages, images_of, rows_of
from tests.support.streams.row_columns import spans_of
from tests.support.values.column_values import LATIN1, MARIADB_ONLY, NUMBERS, STRINGS, TEMPORAL

OLD_TEMPORAL = {ColumnType.TIMESTAMP, ColumnType.DATETIME, ColumnType.TIME}
RAW_BYTES = {"uuid": 16, "inet6": 16, "inet4": 4}
"""With CHARACTER SET binary, columns of these types take their bytes, not their text."""
GENERATED: dict[str, list[str]] = {
    "INT AS (id + 1) VIRTUAL": [],
    "VARCHAR(20) AS (CONCAT('g', id)) STORED": [],
}


@dataclass(frozen=True)
class Read:
    """What a table's changes look like in the binlog, and decoded."""

    table_map: TableMap
    formats: tuple[ColumnFormat, ...]
    events: list[bytes]
    written: tuple[int, ...]

    def images(self) -> RowImages:
        """As the compiled decoder reads them, and the careful one, too."""
        generated = frozenset(range(len(self.formats))) - {*self.written}
        given = self.formats, self.written, (0,), (0,), generated
        read = ReferenceDecoder(RowFormat(*given)).decode(self.events)
        block = BlockDecoder(RowFormat(*given)).decode(spans_of(self.events))
        assert block is not None
        assert rows_of(block) == rows_of(read)
        return images_of(read)


def create(server: DatabaseServer, database: str, types: dict[str, list[str]]) -> None:
    columns = ", ".join(f"c{n} {kind}" for n, kind in enumerate(types))
    server.execute(f"CREATE DATABASE IF NOT EXISTS {database} CHARACTER SET latin1")
    for name in ("source", "target"):
        server.execute(
            f"CREATE TABLE {database}.{name} (id INT PRIMARY KEY, {columns})"
            " ENGINE=InnoDB ROW_FORMAT=DYNAMIC"
        )


def inserts(types: dict[str, list[str]]) -> list[str]:
    """One row for each value of the type that has the most, and one of NULLs."""
    names = ", ".join(["id", *(f"c{n}" for n, values in enumerate(types.values()) if values)])
    lists = [values for values in types.values() if values]
    rows = [[v[n % len(v)] for v in lists] for n in range(max(map(len, lists)))]
    rows.append(["NULL"] * len(lists))
    return [
        f"INSERT INTO source ({names}) VALUES ({n}, {', '.join(row)})" for n, row in enumerate(rows)
    ]


def changes(server: DatabaseServer, database: str, statements: list[str]) -> Read:
    """Run the statements and read their row events, which are all of one table."""
    (table_map,), events = row_events(server, database, statements)
    formats, written = described(server, database, table_map)
    return Read(table_map, formats, events, written)


def described(
    server: DatabaseServer, database: str, table_map: TableMap
) -> tuple[tuple[ColumnFormat, ...], tuple[int, ...]]:
    """The columns' formats from information_schema, and which are not generated."""
    rows = server.execute(
        "SELECT COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME, CHARACTER_OCTET_LENGTH,"
        " DATETIME_PRECISION, EXTRA FROM information_schema.COLUMNS"
        f" WHERE TABLE_SCHEMA = '{database}' AND TABLE_NAME = 'source' ORDER BY ORDINAL_POSITION"
    )
    formats = []
    for row, code, metadata in zip(rows, table_map.types, table_map.metadata, strict=True):
        name, kind, charset, octets, fraction, _ = row
        labelled = code in (ColumnType.ENUM, ColumnType.SET)
        labels = [x.replace("''", "'") for x in re.findall(r"'((?:[^']|'')*)'", kind)]
        formats.append(
            ColumnFormat(
                name=name,
                type_code=code,
                metadata=fraction or 0 if code in OLD_TEMPORAL else metadata,
                unsigned="unsigned" in kind,
                length=octets if kind.startswith("binary") else RAW_BYTES.get(kind),
                labels=tuple(encode_label(x, charset) for x in labels) if labelled else (),
                separator=encode_label(",", charset) if labelled else b",",
            )
        )
    generated = re.compile("VIRTUAL|PERSISTENT|STORED")
    return tuple(formats), tuple(n for n, row in enumerate(rows) if not generated.search(row[5]))


def load(server: DatabaseServer, database: str, read: Read, lines: list[bytes]) -> None:
    """Stream the lines into the target table, as the writer does."""
    names = ", ".join(read.formats[i].name for i in read.written)
    receiving, sending = os.pipe()

    def send() -> None:
        with os.fdopen(sending, "wb") as pipe:
            pipe.writelines(line + b"\n" for line in lines)

    sender = threading.Thread(target=send)
    sender.start()
    with (
        os.fdopen(receiving, "rb"),
        server.connect(database=database, local_infile=True) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SET sql_mode='', time_zone='+00:00'")
        cursor.execute(
            f"LOAD DATA LOCAL INFILE '/dev/fd/{receiving}' INTO TABLE target CHARACTER SET binary"
            " FIELDS TERMINATED BY '\\t' ESCAPED BY '\\\\' LINES TERMINATED BY '\\n'"
            f" ({names})"
        )
        cursor.execute("SHOW WARNINGS")
        assert cursor.fetchall() == ()
    sender.join()


def rows(server: DatabaseServer, database: str, table: str) -> list[tuple[Any, ...]]:
    """The table as the server's bytes, without any conversion on the way."""
    with (
        server.connect(database=database, use_unicode=False, conv={}) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SET character_set_results=NULL, time_zone='+00:00'")
        cursor.execute(f"SELECT * FROM {table} ORDER BY id")
        return list(cursor.fetchall())


def check(server: DatabaseServer, database: str, types: dict[str, list[str]], *more: str) -> Read:
    """Insert every value, run ``more``, and build the table anew from the binlog alone."""
    create(server, database, types)
    read = changes(server, database, [*inserts(types), *more])
    images = read.images()
    table: dict[bytes, bytes] = {}
    for before, after, before_key, after_key in zip(
        images.before, images.after, images.before_key, images.after_key, strict=True
    ):
        if before_key is not None:
            assert table.pop(before_key) == before
        if after_key is not None:
            assert after is not None
            table[after_key] = after
    load(server, database, read, list(table.values()))
    source, target = rows(server, database, "source"), rows(server, database, "target")
    for wanted, found in zip(source, target, strict=True):
        for column, one, other in zip(read.formats, wanted, found, strict=True):
            assert one == other, column
    return read


@pytest.mark.parametrize("types", [NUMBERS, TEMPORAL, STRINGS], ids=["numbers", "temporal", "text"])
@pytest.mark.parametrize("kind", ["mariadb_source", "mariadb_source_full", "mysql56_source"])
def test_every_type(
    kind: str, types: dict[str, list[str]], database_name: str, request: pytest.FixtureRequest
) -> None:
    server = request.getfixturevalue(kind)
    images = check(
        server,
        database_name,
        types,
        "UPDATE source SET id = id + 1000 WHERE id IN (0, 1)",
        "DELETE FROM source WHERE id = 2",
    ).images()
    assert images.change.count(RowChange.UPDATE) == 2
    assert images.change.count(RowChange.DELETE) == 1


@pytest.mark.parametrize(
    "types", [MARIADB_ONLY, MARIADB_ONLY | GENERATED], ids=["stored", "with generated columns"]
)
def test_types_of_mariadb(
    types: dict[str, list[str]], mariadb_source: DatabaseServer, database_name: str
) -> None:
    check(mariadb_source, database_name, types, "UPDATE source SET c0 = NULL WHERE id = 1")


def test_generated_columns_are_in_the_image(
    mariadb_source: DatabaseServer, database_name: str
) -> None:
    create(mariadb_source, database_name, {"INT": [], **GENERATED})
    read = changes(
        mariadb_source,
        database_name,
        [
            "INSERT INTO source (id, c0) VALUES (1, 5)",
            "UPDATE source SET c0 = 6",
            "DELETE FROM source",
        ],
    )
    everything = (0, 1, 2, 3)
    images = images_of(
        ReferenceDecoder(RowFormat(read.formats, everything, (), (), frozenset())).decode(
            read.events
        )
    )
    assert read.written == (0, 1)
    assert images.after == [b"1\t5\t2\tg1", b"1\t6\t2\tg1", None]
    assert images.before == [None, b"1\t5\t2\tg1", b"1\t6\t2\tg1"]


def test_compressed_events(start_server: Any, database_name: str) -> None:
    server = start_server(
        MariaDBServer, {"log_bin_compress": "1", "log_bin_compress_min_len": "10"}
    )
    read = check(
        server,
        database_name,
        STRINGS,
        "UPDATE source SET id = id + 100",
        "DELETE FROM source WHERE id = 102",
    )
    assert {event[4] for event in read.events} >= {
        EventType.MARIADB_WRITE_ROWS_COMPRESSED,
        EventType.MARIADB_UPDATE_ROWS_COMPRESSED,
        EventType.MARIADB_DELETE_ROWS_COMPRESSED,
    }


def test_temporal_format_of_old_mariadb(start_server: Any, database_name: str) -> None:
    server = start_server(MariaDBServer, {"mysql56_temporal_format": "OFF"})
    read = check(server, database_name, TEMPORAL, "UPDATE source SET id = id + 100")
    assert {*read.table_map.types} >= OLD_TEMPORAL


@pytest.mark.parametrize("row_image", ["MINIMAL", "NOBLOB"])
def test_partial_row_images_are_refused(
    row_image: str, mariadb_source: DatabaseServer, database_name: str
) -> None:
    create(mariadb_source, database_name, {"INT": [], "BLOB": []})
    read = changes(
        mariadb_source,
        database_name,
        [
            "INSERT INTO source VALUES (1, 2, 'x')",
            f"SET binlog_row_image = {row_image}",
            "UPDATE source SET c0 = 3",
        ],
    )
    assert images_of(
        ReferenceDecoder(RowFormat(read.formats, read.written, (0,), (), frozenset())).decode(
            read.events[:1]
        )
    )
    with pytest.raises(BinlogError, match=r"binlog_row_image is not FULL.*c1"):
        read.images()


def test_text_of_uuid_and_inet(mariadb_source: DatabaseServer, database_name: str) -> None:
    types = {kind: MARIADB_ONLY[kind] for kind in ("UUID", "INET6", "INET4")}
    create(mariadb_source, database_name, types)
    read = changes(mariadb_source, database_name, inserts(types))
    formats = (
        read.formats[0],
        *(
            replace(column, text=kind.lower())
            for column, kind in zip(read.formats[1:], types, strict=True)
        ),
    )
    images = images_of(
        ReferenceDecoder(RowFormat(formats, (1, 2, 3), (0,), (), frozenset())).decode(read.events)
    )
    found = mariadb_source.execute(
        f"SELECT CONCAT_WS('\t', c0, c1, c2) FROM {database_name}.source"
        " WHERE c0 IS NOT NULL ORDER BY id"
    )
    assert [line.encode() for (line,) in found] == images.after[:-1]


def test_transcoded_text(mariadb_source: DatabaseServer, database_name: str) -> None:
    types = {
        "VARCHAR(300) CHARACTER SET latin1": [f"_latin1 {LATIN1}"],
        "CHAR(9) CHARACTER SET gbk": ["_gbk 0xD55CE55C"],
        "TEXT CHARACTER SET utf16 COMPRESSED": ["REPEAT(_utf16 0xD83DDE00005C, 99)"],
    }
    create(mariadb_source, database_name, types)
    read = changes(mariadb_source, database_name, inserts(types)[:1])
    formats = list(read.formats)
    for n, charset in enumerate(("latin1", "gbk", "utf16"), 1):
        formats[n] = replace(formats[n], transcode=(codec(charset), codec("utf8mb4")))
    read = replace(read, formats=tuple(formats))
    mariadb_source.execute(f"ALTER TABLE {database_name}.target CONVERT TO CHARACTER SET utf8mb4")
    load(mariadb_source, database_name, read, [line for line in read.images().after if line])
    both = "CONVERT(CONCAT_WS('|', CONVERT({0}.c0 USING utf8mb4), CONVERT({0}.c1 USING utf8mb4),"
    both += " CONVERT({0}.c2 USING utf8mb4)) USING binary)"
    [(source, target)] = mariadb_source.execute(
        f"SELECT {both.format('s')}, {both.format('t')}"
        f" FROM {database_name}.source s, {database_name}.target t"
    )
    assert source == target
