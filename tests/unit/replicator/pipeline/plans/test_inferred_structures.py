"""When an event tells so much that a guess can do no harm."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replicator.binlog.events.table_map import OptionalMetadata, TableMap
from replicator.mysql.column_types import ColumnType
from replicator.pipeline.plans.planning import described_by_event
from replicator.rows.values.charsets import charset_of
from replicator.schema.structure.structure import Column, Table

COLUMNS = (
    Column("id", "int(10) unsigned"),
    Column("name", "varchar(9)", "utf8mb4"),
    Column("kind", "enum('x','y')", "latin1"),
    Column("raw", "varbinary(9)"),
)
FULL = OptionalMetadata(
    names=("ID", "name", "kind", "raw"),
    unsigned=(True, None, None, None),
    collations=(None, 45, 8, 63),
    labels=(None, None, (b"x", b"y"), None),
)
TYPES = (ColumnType.LONG, ColumnType.VARCHAR, ColumnType.ENUM, ColumnType.VARCHAR)


def told(columns: tuple[Column, ...], optional: OptionalMetadata) -> bool:
    table_map = TableMap("s", "t", TYPES, (0,) * 4, (True,) * 4, optional)
    return described_by_event(Table("s", "t", columns, (), ""), table_map)


def test_full_metadata_tell_all() -> None:
    assert told(COLUMNS, FULL)


@pytest.mark.parametrize(
    "left_out",
    [{"names": None}, {"unsigned": None}, {"collations": None}, {"labels": None}],
    ids=["names", "signs", "collations", "labels"],
)
def test_whatever_is_left_out_may_be_otherwise(left_out: dict[str, None]) -> None:
    assert not told(COLUMNS, replace(FULL, **left_out))


@pytest.mark.parametrize(
    ("place", "column"),
    [
        (0, Column("other", "int(10) unsigned")),
        (1, Column("name", "varchar(9)", "latin1")),
        (1, Column("name", "varbinary(9)")),
        (1, Column("name", "varchar(9)", "utf8mb4", generated=True)),
        (3, Column("raw", "varchar(9)", "utf8mb4")),
    ],
)
def test_what_is_told_otherwise_is_not_told(place: int, column: Column) -> None:
    assert not told((*COLUMNS[:place], column, *COLUMNS[place + 1 :]), FULL)


def test_mariadbs_types_that_look_like_binary_are_not_told() -> None:
    optional = OptionalMetadata(names=("u",), collations=(63,))
    table_map = TableMap("s", "t", (ColumnType.STRING,), (16,), (True,), optional)
    for kind in ("uuid", "binary(16)"):
        assert not described_by_event(Table("s", "t", (Column("u", kind),), (), ""), table_map)


def test_collations_name_their_character_set() -> None:
    assert [charset_of(n) for n in (8, 33, 45, 255, 63, 2304, 999)] == [
        *("latin1", "utf8mb3", "utf8mb4", "utf8mb4", "", "utf8mb4"),
        None,
    ]
