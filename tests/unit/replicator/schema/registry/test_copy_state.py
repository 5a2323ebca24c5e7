"""Whether a member's rows are copied, by the place of its binlog, through names and drops."""

from __future__ import annotations

from replicator.mysql.names import Member, TableName
from replicator.schema.registry.registry import (
    GONE,
    CopyState,
    KnownStructure,
    Provenance,
    SchemaRegistry,
)
from replicator.schema.structure.structure import Table

TARGET = TableName("d", "t")
KNOWN = KnownStructure(Table("s", "x", (), (), ""), Provenance.READ)


def member(registry: SchemaRegistry, name: str) -> int:
    number = registry.join(Member("a", TableName("s", name)), TARGET)
    registry.learn(number, 0, KNOWN)
    return number


def test_a_member_counts_as_copied_unless_it_was_deferred() -> None:
    registry = SchemaRegistry()
    one, other = member(registry, "x"), member(registry, "y")
    registry.defer(one, CopyState.DEFERRED)
    assert registry.copying(one, 7) is CopyState.DEFERRED
    assert registry.record(one, 0, 7).copying is CopyState.DEFERRED
    assert registry.copying(other, 7) is CopyState.COPIED
    assert registry.deferred_in("a")
    assert not registry.deferred_in("b")
    assert not registry.leaves_out


def test_it_goes_along_to_another_name_and_not_to_who_takes_the_old_one() -> None:
    registry = SchemaRegistry()
    one, new, third = member(registry, "x"), member(registry, "z"), member(registry, "y")
    registry.defer(one, CopyState.LEFT_OUT)
    assert registry.leaves_out
    # RENAME TABLE x TO z, y TO x
    registry.inherit(new, 50, one)
    registry.learn(one, 50, GONE)
    registry.inherit(one, 50, third)
    registry.learn(third, 50, GONE)
    assert registry.copying(new, 60) is CopyState.LEFT_OUT
    assert registry.copying(one, 60) is CopyState.COPIED
    # Read again from an earlier place, it is found as it was.
    assert registry.copying(one, 49) is CopyState.LEFT_OUT
    assert registry.copying(new, 49) is CopyState.COPIED


def test_what_is_dropped_needs_no_copy_nor_what_is_made_in_its_place() -> None:
    registry = SchemaRegistry()
    one = member(registry, "x")
    registry.defer(one, CopyState.DEFERRED)
    registry.learn(one, 50, GONE)
    registry.leave(one)
    again = registry.join(Member("a", TableName("s", "x")), TARGET)
    registry.learn(again, 70, KNOWN)
    assert registry.copying(again, 49) is CopyState.DEFERRED
    assert registry.copying(again, 80) is CopyState.COPIED
