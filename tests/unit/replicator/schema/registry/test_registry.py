from __future__ import annotations

import pytest

from replicator.mysql.names import Member, TableName
from replicator.schema.registry.registry import (
    GONE,
    UNSEEN,
    KnownStructure,
    Provenance,
    SchemaRegistry,
    dump_structure,
    guess,
    load_structure,
)
from replicator.schema.structure.structure import Column, Table, UniqueKey

TARGET = TableName("m", "t")


def member(name: str, source: str = "a") -> Member:
    return Member(source, TableName("s", name))


def table(*columns: str) -> Table:
    return Table(
        "s",
        "t1",
        tuple(Column(name, "int(11)", nullable=False) for name in columns),
        (UniqueKey("PRIMARY", (columns[0],)),),
        "CREATE TABLE `t1` (…) AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4",
    )


def test_a_member_keeps_its_number_when_it_comes_back() -> None:
    registry = SchemaRegistry()
    first = registry.join(member("t1"), TARGET)
    second = registry.join(member("t2"), TARGET)
    registry.leave(first)
    assert registry.members_of(registry.target(TARGET)) == (second,)
    assert registry.join(member("t1"), TARGET) == first
    assert registry.members_of(registry.target(TARGET)) == (first, second)
    assert registry.members_in("a") == (first, second)
    assert registry.members_in("b") == ()
    other = TableName(TARGET.schema, "other")
    assert registry.join(member("t1"), other) == first
    assert registry.members_of(registry.target(TARGET)) == (second,)
    assert registry.members_of(registry.target(other)) == (first,)
    registry.leave(first)
    registry.leave(first)
    assert registry.members_of(registry.target(other)) == ()


def known(*columns: str) -> KnownStructure:
    return KnownStructure(table(*columns), Provenance.LEARNED)


def test_a_structure_holds_until_the_next_one_that_was_learned() -> None:
    registry = SchemaRegistry()
    number = registry.join(member("t1"), TARGET)
    assert registry.held(number, 0) == UNSEEN
    assert not UNSEEN.known
    registry.learn(number, 1, known("a"))
    registry.learn(number, 4, known("a", "b"))
    assert [registry.held(number, at) for at in range(6)] == [
        UNSEEN,
        known("a"),
        known("a"),
        known("a"),
        known("a", "b"),
        known("a", "b"),
    ]


def test_a_guess_hides_what_was_known_before() -> None:
    registry = SchemaRegistry()
    number = registry.join(member("t1"), TARGET)
    registry.learn(number, 0, known("a"))
    registry.learn(number, 1, guess(None, "it could not be found out"))
    assert not registry.held(number, 1).known
    assert registry.record(number, 3, 1).held.doubt == "it could not be found out"


def test_a_renamed_table_has_what_the_old_name_turns_out_to_have_had() -> None:
    registry = SchemaRegistry()
    old, new = registry.join(member("t1"), TARGET), registry.join(member("t2"), TARGET)
    registry.learn(old, 0, known("a"))
    registry.inherit(new, 7, old)
    registry.learn(old, 7, GONE)
    # An ALTER at 5 is executed, and so learned, after the RENAME at 7 was read.
    registry.learn(old, 5, known("a", "b"))
    assert registry.held(new, 7) == known("a", "b")
    assert registry.held(old, 7).structure is None


def test_a_fingerprint_ignores_the_name_and_the_counter() -> None:
    def made(create: str) -> str:
        return Table("s", "t", (), (), create).fingerprint

    same = made("CREATE TABLE `t1` (a int) ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4")
    assert same == made("CREATE TABLE `x``y` (a int) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4")
    assert same != made("CREATE TABLE `t1` (a bigint) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4")


@pytest.mark.parametrize("structure", [None, table("a", "ö")])
def test_structures_survive_the_meta_tables(structure: Table | None) -> None:
    assert load_structure(dump_structure(structure)) == structure
