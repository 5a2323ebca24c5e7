"""Which key a row with a key of the target would have in a shard."""

from __future__ import annotations

import pytest

from replicator.downstream.rows.target_columns import TargetColumn
from replicator.mysql.column_types import Literal
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.server.identity import ServerIdentity
from replicator.pipeline.copy.copy_plan import plan_copy
from replicator.pipeline.moved_rows.key_holders import KeyHolder, own_key
from replicator.routing.columns.column_mapping import MappedColumn
from replicator.routing.columns.member_columns import MemberColumns
from replicator.schema.structure.structure import Column, Table, UniqueKey

SHARD = Table(
    "s",
    "t1",
    (Column("Id", "bigint(20)", nullable=False), Column("v", "int(11)")),
    (UniqueKey("PRIMARY", ("Id",)),),
    "",
)
ID = TargetColumn("id", Literal.NUMBER)
FROM = TargetColumn("From_Table", Literal.TEXT)
UPPER = 5 << 44


def holder(upper: int | None = None, *extracted: tuple[str, bytes]) -> KeyHolder:
    rules = MemberColumns(mapped=None if upper is None else MappedColumn("ID", upper))
    copy = plan_copy("a", SHARD, "", SHARD, 0, rules)
    return KeyHolder(copy, DatabaseAddress("h", 1, "u", ""), ServerIdentity(1, ""), 0, extracted)


@pytest.mark.parametrize(
    ("of", "columns", "line", "expected"),
    [
        (holder(), (ID,), b"7", [b"7"]),
        (holder(UPPER), (ID,), b"%d" % (UPPER | 7), [b"7"]),
        (holder(UPPER), (ID,), b"%d" % (UPPER | (1 << 45) | 7), None),
        (holder(UPPER), (ID,), b"7", None),
        (holder(None, ("from_table", b"1")), (ID, FROM), b"7\t1", [b"7"]),
        (holder(None, ("from_table", b"1")), (FROM, ID), b"2\t7", None),
        (holder(None, ("from_table", b"1")), (FROM,), b"1", []),
    ],
)
def test_the_key_that_a_shard_has(
    of: KeyHolder, columns: tuple[TargetColumn, ...], line: bytes, expected: list[bytes] | None
) -> None:
    found = own_key(dict(of.extracted), of.copy.mapped, columns, line)
    assert (None if found is None else [field for _, field in found]) == expected
