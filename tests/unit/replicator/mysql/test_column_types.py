"""Every module that decides by column type has an answer for each type of the table."""

from __future__ import annotations

import pytest

from replicator.binlog.events.table_map import parse_table_map
from replicator.mysql.column_types import (
    BINLOG_TYPES,
    SQL_TYPES,
    BinlogType,
    ColumnType,
    Decoder,
    Literal,
    Metadata,
    SqlType,
    Width,
    sql_type,
)
from replicator.pipeline.copy.changed_shard import ChangedTooMuchError, filler
from replicator.pipeline.copy.copy_plan import same_type
from replicator.pipeline.plans.filter_columns import filter_column
from replicator.pipeline.plans.planning import target_column
from replicator.rows.decoder.row_format import Pieces, extent, field_format
from replicator.rows.values.column_format import ColumnFormat
from replicator.rows.values.value_readers import column_reader
from replicator.schema.scratch.stand_ins import stand_in
from replicator.schema.structure.conversions import Fit, conversion
from replicator.schema.structure.structure import Column, Table

READABLE = [found for found in BINLOG_TYPES.values() if found.decoder is not Decoder.NONE]
WITHOUT_FILLER = {"vector", "geometry"}
"""Families whose types have no value that could stand for a column that is gone."""
IN_UTF8 = "utf8mb4_unicode_ci"


def example(found: BinlogType) -> int:
    """Metadata that a column of the type may have."""
    examples = {Width.PREFIX: 4, Width.LENGTH: 300, Width.DIGITS: 10 << 8 | 2, Width.BITS: 1 << 8}
    return found.sizes[-1] if found.width is Width.NUMBER else examples.get(found.width, 0)


def column_of(found: SqlType) -> Column:
    """A column of the type, with the arguments that its definition has to have."""
    arguments = {"enum": "('a','b')", "set": "('a','b')", "vector": "(3)", "varchar": "(9)"}
    text = found.literal in (Literal.TEXT, Literal.ENUM)
    return Column(
        "v",
        found.name + arguments.get(found.name, ""),
        "utf8mb4" if text else "",
        IN_UTF8 if text else "",
        nullable=False,
    )


@pytest.mark.parametrize("found", BINLOG_TYPES.values(), ids=lambda found: found.code.name)
def test_a_table_map_tells_each_type(found: BinlogType) -> None:
    metadata = example(found)
    assert found.is_possible(metadata)
    code, stored = found.code, metadata.to_bytes(2, "little")
    if found.metadata is Metadata.BIG:
        stored = metadata.to_bytes(2, "big")
        if found.width is Width.NUMBER:
            code, stored = ColumnType.STRING, bytes([found.code, metadata])
        elif found.code == ColumnType.STRING:
            stored = bytes([found.code ^ (metadata >> 4 & 0x30), metadata & 255])
    block = stored[: {Metadata.NONE: 0, Metadata.BYTE: 1}.get(found.metadata, 2)]
    body = bytes(8) + b"\x01s\0\x01t\0\x01" + bytes([code, len(block)]) + block + b"\0"
    table_map = parse_table_map(body)
    assert (table_map.types, table_map.metadata) == ((found.code,), (metadata,))


@pytest.mark.parametrize("found", READABLE, ids=lambda found: found.code.name)
def test_both_decoders_read_each_type(found: BinlogType) -> None:
    column = ColumnFormat("v", found.code, example(found), labels=(b"a", b"b"))
    length, size = extent(column)
    assert bool(length) != bool(size)
    # A value of zeros: an empty one where a length stands in front.
    image = bytes(length or size)
    assert column_reader(column)(image, 0)[1] == len(image)
    assert field_format(column, 0, Pieces())[1] == 0


@pytest.mark.parametrize("found", SQL_TYPES.values(), ids=lambda found: found.name)
def test_each_type_is_held_copied_and_written(found: SqlType) -> None:
    column = column_of(found)
    assert column.sql_type is found
    assert found.stored
    assert all(BINLOG_TYPES[code].decoder is not Decoder.NONE for code in found.stored)
    assert target_column(column).literal is found.literal
    assert conversion(column, column).fit is Fit.ALL
    assert filter_column(column, mariadb=True).name == "v"
    if found.family in WITHOUT_FILLER:
        with pytest.raises(ChangedTooMuchError):
            filler(column)
    else:
        assert filler(column)
        assert found.implicit or found.name == "enum"
    passes = found.family not in {"json", "special", *WITHOUT_FILLER} and found.size < 2**16
    assert same_type(column, column) == passes


@pytest.mark.parametrize("found", SQL_TYPES.values(), ids=lambda found: found.name)
def test_a_scratch_table_can_have_each_type(found: SqlType) -> None:
    column = column_of(found)
    create = f"CREATE TABLE `t` (`v` {column.type}) DEFAULT CHARSET=utf8mb4 COLLATE={IN_UTF8}"
    made = stand_in(Table("s", "t", (column,), (), create), "ALTER TABLE t ADD c INT")
    assert (f"varbinary({found.stand_in})" in made.create_sql) == bool(found.stand_in)
    assert bool(found.stand_in) == (found.family in {"special", "geometry", "vector"})


def test_each_binlog_type_that_can_be_read_holds_some_type() -> None:
    held = {code for found in SQL_TYPES.values() for code in found.stored}
    assert held == {found.code for found in READABLE}


def test_stand_ins_and_other_words_are_told_apart() -> None:
    lengths = {found.stand_in for found in SQL_TYPES.values() if found.stand_in}
    assert len(lengths) == 5
    words = [word for found in SQL_TYPES.values() for word in (found.name, *found.aliases)]
    assert len(words) == len(set(words))


def test_a_type_that_is_not_known_is_none_of_a_family() -> None:
    # Named as a family is: a rule for that family does not take it.
    unknown, known = Column("v", "integer"), Column("v", "int")
    assert not sql_type("integer").stored
    assert conversion(unknown, known).fit is Fit.NONE
    assert conversion(known, unknown).fit is Fit.NONE
