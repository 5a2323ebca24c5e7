"""Which unique keys of a target a shard keeps to as well."""

from __future__ import annotations

import pytest

from replicator.pipeline.plans.shard_keys import held_keys
from replicator.routing.columns.member_columns import AS_THEY_ARE
from replicator.schema.structure.structure import Column, Table, UniqueKey

COLUMNS = ("id", "a", "b")


def table(*keys: str, collation: str = "utf8mb4_general_ci") -> Table:
    lines = ["`id` int NOT NULL", "`a` varchar(20)", "`b` varchar(20)", "PRIMARY KEY (`id`)", *keys]
    text = "CREATE TABLE `t` (\n  " + ",\n  ".join(lines) + "\n) ENGINE=InnoDB"
    columns = (
        Column("id", "int"),
        *(Column(name, "varchar(20)", "utf8mb4", collation) for name in COLUMNS[1:]),
    )
    return Table("s", "t", columns, (UniqueKey("PRIMARY", ("id",)),), text)


@pytest.mark.parametrize(
    ("shard", "target", "held"),
    [
        ("UNIQUE KEY `k` (`a`)", "UNIQUE KEY `other` (`a`)", (("a", 0),)),
        ("UNIQUE KEY `k` (`a`)", "UNIQUE KEY `k` (`b`,`a`)", (("b", 0), ("a", 0))),
        ("UNIQUE KEY `k` (`a`(5))", "UNIQUE KEY `k` (`a`)", (("a", 0),)),
        ("UNIQUE KEY `k` (`a`(5))", "UNIQUE KEY `k` (`a`(5))", (("a", 5),)),
        ("UNIQUE KEY `k` (`a`)", "UNIQUE KEY `k` (`a`(5))", None),
        ("UNIQUE KEY `k` (`a`,`b`)", "UNIQUE KEY `k` (`a`)", None),
        ("KEY `k` (`a`)", "UNIQUE KEY `k` (`a`)", None),
        ("UNIQUE KEY `k` ((lower(`a`)))", "UNIQUE KEY `k` ((lower(`a`)))", None),
    ],
)
def test_a_key_is_held_if_the_shard_has_it_or_a_stricter_one(
    shard: str, target: str, held: tuple[tuple[str, int], ...] | None
) -> None:
    expected = () if held is None else (held,)
    assert held_keys(table(shard), table(target), AS_THEY_ARE) == expected


def test_a_key_that_compares_without_case_is_not_that_of_bytes() -> None:
    key = "UNIQUE KEY `k` (`a`)"
    binary = table(key, collation="utf8mb4_bin")
    assert held_keys(binary, table(key), AS_THEY_ARE) == ()
    assert held_keys(table(key), binary, AS_THEY_ARE) == ((("a", 0),),)
    assert held_keys(binary, binary, AS_THEY_ARE) == ((("a", 0),),)


def test_the_rules_of_keys_are_those_of_their_columns() -> None:
    key = "UNIQUE KEY `k` (`a`)"
    rules = table(key).key_rules
    assert rules != table().key_rules
    text = table(key).create_sql
    other = text.replace("`b` varchar(20)", "`b` varchar(30)")
    coarser = text.replace("`a` varchar(20)", "`a` varchar(20) COLLATE utf8mb4_bin")
    of = [Table("s", "t", (), (), sql).key_rules for sql in (text, other, coarser)]
    assert [found == rules for found in of] == [True, True, False]
