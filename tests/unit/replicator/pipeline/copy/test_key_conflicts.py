"""Which key a row with a key of the target would have in a shard."""

from __future__ import annotations

import pytest

from replicator.downstream.rows.target_columns import TargetColumn
from replicator.mysql.column_types import Literal
from replicator.pipeline.copy.key_conflicts import KeyPart, key_parts, own_key
from replicator.routing.columns.column_mapping import MappedColumn
from replicator.routing.columns.member_columns import ExtractedColumn, MemberColumns
from replicator.schema.structure.structure import Column, Table

ID = TargetColumn("id", Literal.NUMBER)
FROM = TargetColumn("From_Table", Literal.TEXT)
UPPER = 5 << 44
MAPPED = KeyPart(ID, MappedColumn("ID", UPPER))
MADE = KeyPart(FROM, constant=b"1")


@pytest.mark.parametrize(
    ("parts", "line", "expected"),
    [
        ((KeyPart(ID),), b"7", [b"7"]),
        ((MAPPED,), b"%d" % (UPPER | 7), [b"7"]),
        ((MAPPED,), b"%d" % (UPPER | (1 << 45) | 7), None),
        ((MAPPED,), b"7", None),
        ((KeyPart(ID), MADE), b"7\t1", [b"7"]),
        ((MADE, KeyPart(ID)), b"2\t7", None),
        ((MADE,), b"1", []),
    ],
)
def test_the_key_that_a_shard_has(
    parts: tuple[KeyPart, ...], line: bytes, expected: list[bytes] | None
) -> None:
    found = own_key(parts, line)
    assert (None if found is None else [field for _, field in found]) == expected


def test_the_columns_of_a_key_have_what_the_rules_make_of_them() -> None:
    columns = Column("id", "bigint(20)"), Column("From_Table", "varchar(9)", "utf8mb4")
    target = Table("s", "t", columns, (), "")
    rules = MemberColumns((ExtractedColumn("from_table", "1"),), MappedColumn("ID", UPPER))
    number, made = key_parts(columns, target, rules)
    assert (number.mapped, number.constant) == (rules.mapped, None)
    assert (made.mapped, made.constant) == (None, b"1")
