from __future__ import annotations

from dataclasses import replace

import pytest

from replicator.checks.schema.agreement import (
    Shard,
    check_agreement,
    member_disagreements,
)
from replicator.checks.schema.structures import check_missing
from replicator.ddl.parser.table_text import table_definition
from replicator.mysql.names import Member, TableName
from replicator.schema.structure.structure import Column, Table, UniqueKey

ID = Column("id", "int(11)", nullable=False)
NAME = Column("name", "varchar(9)", "utf8", "utf8_general_ci")
PRIMARY = UniqueKey("PRIMARY", ("id",))
TARGET = TableName("merged", "t")


def table(*columns: Column, keys: tuple[UniqueKey, ...] = (PRIMARY,), sql: str = "") -> Table:
    return Table("shop", "t1", columns, keys, sql or repr((columns, keys)))


def shards(*tables: Table) -> list[Shard]:
    return [
        Shard(Member("a", TableName("shop", f"t{number}")), found, later_ddl=False)
        for number, found in enumerate(tables, start=1)
    ]


def test_columns_and_keys_that_differ_are_described() -> None:
    first = table(ID, Column("a", "int(11)"), Column("b", "int(11)"))
    other = table(ID, Column("A", "bigint(20)"), Column("c", "int(11)"), keys=())
    assert member_disagreements(first, other) == [
        "`a` is bigint(20), not int(11)",
        "`b` is missing",
        "`c` is additional",
        "unique keys are none, not (id)",
    ]
    assert member_disagreements(first, first) == []


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (replace(NAME, nullable=False), "varchar(9) utf8 NOT NULL, not varchar(9) utf8"),
        (replace(NAME, charset="latin1"), "varchar(9) latin1, not varchar(9) utf8"),
        (replace(NAME, generated=True), "varchar(9) utf8 GENERATED, not varchar(9) utf8"),
        (replace(NAME, type="varchar(8)"), "varchar(8) utf8, not varchar(9) utf8"),
    ],
)
def test_a_column_that_differs(changed: Column, says: str) -> None:
    assert member_disagreements(table(ID, NAME), table(ID, changed)) == [f"`name` is {says}"]


@pytest.mark.parametrize(
    "alike",
    [
        (replace(ID, type="int"), NAME),
        (ID, replace(NAME, charset="utf8mb3", collation="utf8mb3_general_ci")),
        (replace(ID, name="ID"), NAME),
        (ID, replace(NAME, collation="utf8_bin")),
    ],
)
def test_what_servers_write_differently_or_does_not_matter(alike: tuple[Column, ...]) -> None:
    assert member_disagreements(table(ID, NAME), table(*alike)) == []


def test_collations_matter_in_unique_keys() -> None:
    keys = (UniqueKey("u", ("NAME",)),)
    first, other = table(NAME, keys=keys), table(replace(NAME, collation="utf8_bin"), keys=keys)
    assert member_disagreements(first, other) == [
        "`name` is varchar(9) utf8 utf8_bin, not varchar(9) utf8 utf8_general_ci"
    ]


def test_each_way_to_differ_is_told_with_all_members_that_do() -> None:
    more = table(ID, NAME)
    found = check_agreement(
        shards(table(ID), table(ID), more, table(NAME), more), TARGET, required=True
    )
    assert [result.state for result in found] == ["failed", "failed"]
    assert "from a: shop.t1: in a: shop.t3, a: shop.t5 `name` is additional" in found[0].finding
    assert "in a: shop.t4 `id` is missing" in found[1].finding
    many = check_agreement(shards(table(ID), *[more] * 12), TARGET, required=False)
    assert [result.state for result in many] == ["warning"]
    assert "a: shop.t11 and 2 more" in many[0].finding
    (agreeing,) = check_agreement(shards(more, more), TARGET, required=True)
    assert agreeing.state == "passed"


@pytest.mark.parametrize(
    ("clause", "unseen"),
    [
        ("ON DELETE CASCADE", True),
        ("ON DELETE NO ACTION ON UPDATE SET NULL", True),
        ("ON DELETE RESTRICT", False),
        ("", False),
    ],
)
def test_foreign_keys_that_change_rows(clause: str, unseen: bool) -> None:
    key = f"CONSTRAINT `ON DELETE CASCADE` FOREIGN KEY (`a`) REFERENCES `SET` (`ON`) {clause}"
    table = table_definition(f"CREATE TABLE `t` (\n  `a` int,\n  {key}\n)")
    assert [found.acts for found in table.foreign_keys] == [unseen]


def test_a_shard_that_is_no_pattern_for_the_target() -> None:
    (found,) = check_missing(
        TARGET, shards(table(ID, sql="CREATE TABLE `t` LIKE u"))[0], set(), copies=True
    )
    assert (found.name, found.state) == ("table_schema", "failed")
    assert "by hand" in found.remedies[0]
