"""Whether a target has a member's change already."""

from __future__ import annotations

import pytest

from replicator.schema.effects.carried_change import MemberChange, lacking
from replicator.schema.structure.structure import Column, Table, UniqueKey


def table(columns: str, *keys: UniqueKey) -> Table:
    """``a int, b bigint``."""
    pairs = [column.split() for column in columns.split(", ")]
    return Table("s", "t", tuple(Column(name, kind) for name, kind in pairs), keys, "")


U = UniqueKey("u", ("a",))


@pytest.mark.parametrize(
    ("before", "after", "present", "expected"),
    [
        ("a int", "a int, c int", "a int, c int", ()),
        ("a int", "a int, c int", "a int, C bigint", ()),
        ("a int", "a int, c int, d int", "a int, c int", ("column d is missing",)),
        ("a int, c int", "a int", "a int, x int", ()),
        ("a int, c int", "a int, d int", "a int", ("column d is missing",)),
        ("a int, c int", "a int", "a int, c int", ("column c is there still",)),
        ("a int", "a bigint, c int", "a int, c int", ("column a is int instead of bigint",)),
        ("a int", "a bigint, c int", "a bigint, c int", ()),
        ("v int", "w int", "w int", ()),
        ("v int", "w int", "v int", ("column w is missing", "column v is there still")),
        ("a int", "a int", "b int", ()),
    ],
)
def test_columns(before: str, after: str, present: str, expected: tuple[str, ...]) -> None:
    change = MemberChange(table(before), table(after))
    assert lacking(change, table(present)) == expected


def test_unique_keys() -> None:
    without, having = table("a int, b int"), table("a int, b int", U)
    other = table("a int, b int", UniqueKey("u", ("b",)))
    came, went = MemberChange(without, having), MemberChange(having, without)
    assert lacking(came, having) == ()
    assert lacking(came, other) == ("unique key u (a) is missing",)
    assert lacking(came, without) == ("unique key u (a) is missing",)
    assert lacking(went, without) == ()
    assert lacking(went, having) == ("unique key u is there still",)


def test_what_is_not_known_is_not_done() -> None:
    known = table("a int")
    assert lacking(MemberChange(None, known), known)
    assert lacking(MemberChange(known, None), known)
    assert lacking(MemberChange(known, known), None) == ("the table does not exist",)
    assert lacking(MemberChange(None, None, creates=True), None) == ("the table does not exist",)
    assert lacking(MemberChange(None, None, creates=True), known) == ()
