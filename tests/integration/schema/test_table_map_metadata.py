"""What a server with binlog_row_metadata=FULL says of a table, against its information_schema."""

from __future__ import annotations

import pytest

from replicator.binlog.events.table_map import OptionalMetadata
from replicator.sandbox.server import DatabaseServer
from tests.support.streams.binlog_file import row_events

COLUMNS = {
    "id": "INT UNSIGNED",
    "n": "BIGINT",
    "f": "FLOAT UNSIGNED",
    "d": "DECIMAL(5,2)",
    "b": "BIT(3)",
    "t": "TIMESTAMP(3) NULL",
    "latin": "VARCHAR(9) CHARACTER SET latin1 COLLATE latin1_bin",
    "utf": "CHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci",
    "wide": "TEXT CHARACTER SET utf16 COMPRESSED",
    "bin": "VARBINARY(9)",
    "e": "ENUM('é','b') CHARACTER SET latin1",
    "s": "SET('x','y','') CHARACTER SET utf8mb4",
    "u": "UUID",
    "j": "JSON",
    "last": "TINYINT UNSIGNED",
}
SIGNED = {"n": False, "f": True, "d": False, "id": True, "last": True}
LABELS = {"e": (b"\xe9", b"b"), "s": (b"x", b"y", b"")}


def metadata(server: DatabaseServer, database: str, columns: dict[str, str]) -> OptionalMetadata:
    server.execute(
        f"CREATE DATABASE {database}",
        f"CREATE TABLE {database}.t ("
        + ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
        + ", PRIMARY KEY (utf(3), id))",
    )
    insert = "INSERT INTO t (id, utf) VALUES (1, 'x')"
    (table_map,), _ = row_events(server, database, [insert])
    return table_map.optional


def collation_ids(server: DatabaseServer, database: str) -> dict[str, int]:
    """The text columns' collations; the binary one for those that only look like text."""
    found = server.execute(
        "SELECT c.COLUMN_NAME, COALESCE(i.ID, 63), c.DATA_TYPE FROM information_schema.COLUMNS c"
        " LEFT JOIN information_schema.COLLATION_CHARACTER_SET_APPLICABILITY i"
        " ON i.FULL_COLLATION_NAME = c.COLLATION_NAME"
        f" WHERE c.TABLE_SCHEMA = '{database}'"
    )
    return {
        name: number
        for name, number, kind in found
        if number != 63 or kind in ("varbinary", "binary", "uuid")
    }


@pytest.mark.parametrize(
    "extra", [{}, {"g": "GEOMETRY"}, {"y": "YEAR"}, {"g": "POINT", "y": "YEAR"}]
)
def test_full_metadata(
    extra: dict[str, str], mariadb_source_full: DatabaseServer, database_name: str
) -> None:
    columns = {**extra, **COLUMNS}
    found = metadata(mariadb_source_full, database_name, columns)
    collations = collation_ids(mariadb_source_full, database_name)
    assert found.names == tuple(columns)
    assert found.labels == tuple(LABELS.get(name) for name in columns)
    assert found.primary_key == tuple(list(columns).index(name) for name in ("utf", "id"))
    assert found.unsigned == tuple(SIGNED.get(name) for name in columns)
    assert found.collations == tuple(collations.get(name) for name in columns)


def test_no_metadata(mariadb_source: DatabaseServer, database_name: str) -> None:
    assert metadata(mariadb_source, database_name, COLUMNS) == OptionalMetadata()
