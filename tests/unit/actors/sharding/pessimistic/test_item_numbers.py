"""Statements that are later items of the target, since their tables show the earlier ones."""

from __future__ import annotations

from itertools import pairwise

import pytest

from actors.saved.lock_state import ShardStatement
from actors.sharding.pessimistic.item_numbers import mark_later_items, shown_items
from replicator.binlog.segments.segment import Statement
from replicator.mysql.names import Member, TableName
from replicator.schema.registry.registry import KnownStructure, Provenance, SchemaRegistry
from replicator.schema.structure.structure import Column, Table
from replicator.sharding.items import GroupState, Item
from replicator.sharding.pessimistic.group import Group
from replicator.sharding.pessimistic.lock import TargetLock
from replicator.watermark import Place, boundary

WIDTHS = {"int": "int(11)", "bigint": "bigint(20)", "smallint": "smallint(6)"}


def table(kind: str, *, commented: bool = False, null: bool = True) -> Table:
    """A table with a column of a type, as a server shows it."""
    shown = f"{WIDTHS[kind]} {'DEFAULT' if null else 'NOT'} NULL"
    columns = (
        Column("id", "int(11)", "", "", nullable=False),
        Column("v", WIDTHS[kind], "", "", nullable=null),
    )
    options = " COMMENT='x'" if commented else ""
    return Table(
        "s", "t", columns, (), f"CREATE TABLE `t` (`id` int(11) NOT NULL, `v` {shown}){options}"
    )


def run(*tables: Table) -> list[tuple[str, Table, Table]]:
    """Items that lead from each table to the next, called 1, 2, …"""
    pairs = pairwise(tables)
    return [(str(number), *pair) for number, pair in enumerate(pairs, 1)]


PLAIN, NOTED = table("int"), table("int", commented=True)
WIDE = table("bigint")
STEPS = run(PLAIN, WIDE, PLAIN, NOTED, NOTED)


@pytest.mark.parametrize(
    ("text", "own", "shown"),
    [
        ("4", NOTED, 3),
        ("4", PLAIN, 0),
        ("3", PLAIN, 2),
        ("3", NOTED, 2),
        ("2", NOTED, 0),
        ("1", NOTED, 0),
        ("5", NOTED, 0),
    ],
)
def test_a_statement_comes_after_the_items_that_its_table_shows(
    text: str, own: Table, shown: int
) -> None:
    assert shown_items(STEPS, text, own) == shown


@pytest.mark.parametrize(
    "between",
    [
        table("smallint"),
        table("int", null=False),
        Table("s", "t", PLAIN.columns[:1], (), "CREATE TABLE `t` (`id` int(11) NOT NULL)"),
    ],
    ids=["narrower", "without NULL", "without the column"],
)
def test_items_that_may_change_its_values_are_never_shown(between: Table) -> None:
    assert shown_items(run(PLAIN, between, PLAIN, NOTED, NOTED), "4", NOTED) == 0


def test_the_same_statement_may_be_the_first_item() -> None:
    items = [("1", PLAIN, WIDE), ("2", WIDE, PLAIN), ("1", PLAIN, WIDE)]
    assert shown_items(items, "1", PLAIN) == 0


TARGET = TableName("s", "t")
START = boundary(1)
Members = Group[TableName, ShardStatement]


def alter(
    registry: SchemaRegistry, group: Members, name: TableName, at: int, text: str, *tables: Table
) -> None:
    """Record a statement of a member that has these structures before and after it."""
    number = registry.join(Member(group.source, name), TARGET)
    for place, table in zip((at - 1, at), tables, strict=True):
        registry.learn(number, place, KnownStructure(table, Provenance.LEARNED))
    event = ShardStatement(Statement("s", text, at, 0))
    group.ddl(Item(text, (text,), name, Place(at, 0), event))


def test_a_source_that_is_read_again_numbers_no_items_of_others() -> None:
    """A table ahead may join at an earlier version then, and its items get other numbers."""
    registry, lock = SchemaRegistry(), TargetLock[TableName, ShardStatement](TARGET, ["a", "b"])
    a, b = (lock.start(source, GroupState(0, ()), START) for source in "ab")
    one, ahead = TableName("s1", "t"), TableName("s2", "t")
    a.join(one, Place(2, 0), None)
    alter(registry, a, one, 4, "note", PLAIN, NOTED)
    lock.resolve({"a": START, "b": START})
    b.join_ahead(ahead, Place(3, 0), waits=True)
    alter(registry, b, ahead, 5, "note", PLAIN, NOTED)
    lock.executed()
    a.adopt()
    alter(registry, a, one, 7, "widen", NOTED, table("bigint", commented=True))
    assert [item.text for source in "ab" for item in lock.candidates(source)] == ["widen", "note"]
    assert mark_later_items(registry, lock) == frozenset()
    assert not lock.shown
