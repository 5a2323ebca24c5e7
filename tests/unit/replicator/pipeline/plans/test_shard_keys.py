"""Which unique keys of a target a shard keeps to as well."""

from __future__ import annotations

import pytest

from replicator.pipeline.plans.shard_keys import held_keys
from replicator.routing.columns.member_columns import AS_THEY_ARE
from replicator.schema.structure.structure import Column, Table, UniqueKey, write_rules_of

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


OTHERWISE = {
    "NOT NULL": "`b` varchar(20) NOT NULL",
    "charset": "`b` varchar(20) CHARACTER SET latin1",
    "type": "`b` varchar(30)",
    "computed": "`b` varchar(20) GENERATED ALWAYS AS (`a`) STORED",
    "numbered": "`b` varchar(20) AUTO_INCREMENT",
}
ALIKE = {
    "default": "`b` varchar(20) DEFAULT '2020-01-01 00:00:00'",
    "quoted": "`b` varchar(20) DEFAULT 'it''s' COMMENT 'a \\' NOT NULL'",
    "null": "`b` varchar(20) DEFAULT NULL",
}


@pytest.mark.parametrize("line", [*OTHERWISE, *ALIKE])
def test_how_a_target_stores_values(line: str) -> None:
    """A default or a comment says nothing of a value that is written."""
    text = table("UNIQUE KEY `k` (`a`)").create_sql
    other = text.replace("`b` varchar(20)", (OTHERWISE | ALIKE)[line])
    assert (write_rules_of(other) == write_rules_of(text)) == (line in ALIKE)


def test_keys_charset_and_engine_say_how_a_target_stores_values() -> None:
    text = table().create_sql
    key = table("UNIQUE KEY `k` (`a`)").create_sql
    others = [key, text.replace("InnoDB", "MyISAM"), f"{text} DEFAULT CHARSET=latin1"]
    others += [f"{text} COLLATE=latin1_bin"]
    assert len({*map(write_rules_of, (text, *others))}) == 5
    alike = [f"{text} AUTO_INCREMENT=7", f"{text} COMMENT='x'", table("KEY `b` (`b`)").create_sql]
    alike += [text.replace("(\n", "(\n  `my_row_id` bigint NOT NULL,\n")]
    assert {*map(write_rules_of, alike)} == {write_rules_of(text)}
