from __future__ import annotations

import pytest

from replicator.mysql.names import Member, TableName
from replicator.schema.registry import SchemaRegistry, dump_structure, load_structure
from replicator.schema.structure import Column, Table, UniqueKey

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


def test_a_structure_holds_until_the_next_one_that_was_learned() -> None:
    registry = SchemaRegistry()
    number = registry.join(member("t1"), TARGET)
    assert registry.structure(number, 0) is None
    registry.learn(number, 1, table("a"))
    registry.learn(number, 4, table("a", "b"))
    assert [registry.structure(number, at) for at in range(6)] == [
        None,
        table("a"),
        table("a"),
        table("a"),
        table("a", "b"),
        table("a", "b"),
    ]


def test_an_unknown_structure_hides_the_older_one() -> None:
    registry = SchemaRegistry()
    number = registry.join(member("t1"), TARGET)
    registry.learn(number, 0, table("a"))
    registry.learn(number, 1, None)
    assert registry.structure(number, 1) is None


@pytest.mark.parametrize("structure", [None, table("a", "ö")])
def test_structures_survive_the_meta_tables(structure: Table | None) -> None:
    assert load_structure(dump_structure(structure)) == structure


def test_a_fingerprint_ignores_the_name_and_the_counter() -> None:
    def made(create: str) -> str:
        return Table("s", "t", (), (), create).fingerprint

    same = made("CREATE TABLE `t1` (a int) ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4")
    assert same == made("CREATE TABLE `x``y` (a int) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4")
    assert same != made("CREATE TABLE `t1` (a bigint) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4")
