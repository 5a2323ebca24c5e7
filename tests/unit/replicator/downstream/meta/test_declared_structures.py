"""What the operator tells of a shard's structure: where it holds, and until when it is kept."""

from __future__ import annotations

import pytest

from actors.errors.faults import UnreadRows
from actors.task.operator.structure_commands import remedies_of
from replicator.binlog.events.table_map import OptionalMetadata, TableMap
from replicator.binlog.positions.position import BinlogPosition
from replicator.downstream.meta.checkpoint import Checkpoint
from replicator.downstream.meta.declared_structures import DeclaredStructure, is_needed
from replicator.mysql.names import Member, TableName
from replicator.mysql.server.identity import ServerIdentity
from replicator.schema.registry.registry import (
    GONE,
    UNSEEN,
    KnownStructure,
    MemberRecord,
    Provenance,
    SchemaRegistry,
    guess,
)
from replicator.schema.structure.structure import Column, Table

MEMBER = Member("a", TableName("s", "t1"))
TARGET = TableName("m", "t")


def table(*columns: str) -> Table:
    return Table("s", "t1", tuple(Column(name, "int") for name in columns), (), "CREATE TABLE `t1`")


def test_what_is_told_waits_for_its_table_to_become_a_member() -> None:
    registry = SchemaRegistry()
    registry.declare(MEMBER, 5, table("a"))
    number = registry.join(MEMBER, TARGET)
    assert registry.held(number, 4) == UNSEEN
    assert registry.held(number, 5) == KnownStructure(table("a"), Provenance.DECLARED)


def test_what_is_told_outlives_what_is_concluded_for_its_place_only() -> None:
    registry = SchemaRegistry()
    number = registry.join(MEMBER, TARGET)
    registry.declare(MEMBER, 5, table("a"))
    registry.learn(number, 5, guess(table("b"), "why"))
    registry.learn(number, 9, GONE)
    assert registry.held(number, 8).structure == table("a")
    assert registry.held(number, 9) == GONE
    assert registry.places(number) == (5, 9)


def checkpoint(*records: MemberRecord) -> Checkpoint:
    return Checkpoint("a", "bin.000001", 100, "", ServerIdentity(1, ""), records, ())


def record(since: int) -> MemberRecord:
    return MemberRecord(MEMBER, TARGET, 0, since, KnownStructure(table("a"), Provenance.LEARNED))


@pytest.mark.parametrize(
    ("told_for", "saved", "needed"),
    [
        (7, None, True),
        (7, checkpoint(), False),
        (100, checkpoint(), True),
        (7, checkpoint(record(6)), True),
        (7, checkpoint(record(7)), False),
        (7, checkpoint(record(8)), False),
    ],
    ids=["nothing saved", "no member", "ahead", "not saved yet", "saved", "changed since"],
)
def test_it_is_kept_until_the_checkpoint_has_it(
    told_for: int, saved: Checkpoint | None, needed: bool
) -> None:
    assert is_needed(DeclaredStructure(MEMBER, told_for, table("a")), saved, 100) is needed


def test_the_commands_can_be_pasted() -> None:
    name = TableName("my shop", "t.1")
    unread = UnreadRows(Member("a", name), 1, TableMap("s", "t", (), (), (), OptionalMetadata()))
    words = "replicator schema set 'the task' --source a --table 'my shop.`t.1`'"
    assert [
        way.split("` ")[0].startswith(f"`{words}") for way in remedies_of("the task", unread)
    ] == [
        True,
        True,
    ]


def test_a_position_is_made_of_its_key() -> None:
    position = BinlogPosition("mysql-bin.000009", 4)
    assert position.with_key(position.key) == position
    other = BinlogPosition("mysql-bin.000012", 4711)
    assert position.with_key(other.key) == other
