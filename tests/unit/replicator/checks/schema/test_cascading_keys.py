"""Foreign keys with actions that the task can repeat, and those that it can't."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replicator.checks.schema.cascading_keys import SourceRules, meeting, spreading, unrepeatable
from replicator.ddl.model.table import ForeignKeyDefinition
from replicator.mysql.names import Member, TableName
from replicator.routing.columns.column_mapping import MappedColumn
from replicator.routing.columns.member_columns import (
    AS_THEY_ARE,
    ExtractedColumn,
    MemberColumns,
)
from replicator.schema.structure.structure import Column, Table, UniqueKey

P, C = TableName("s", "p_1"), TableName("s", "c_1")
KEY = ForeignKeyDefinition("k", ("p",), "", "p_1", ("id",), on_delete="CASCADE")
RULES = SourceRules(
    lambda name: TableName("m", name.table[0]) if name.table[0] in "pc" else None,
    lambda _: AS_THEY_ARE,
    lambda _: False,
)


def mapped(column: str, upper: int) -> MemberColumns:
    return MemberColumns(mapped=MappedColumn(column, upper))


def test_a_key_whose_parent_is_replicated_can_be_repeated() -> None:
    assert unrepeatable(C, KEY, RULES) is None


@pytest.mark.parametrize(
    ("key", "rules", "words"),
    [
        (replace(KEY, parent="other"), RULES, "s.c_1 refers to s.other, which is not replicated"),
        (replace(KEY, parent_schema="z", parent="x"), RULES, "refers to z.x"),
        (KEY, replace(RULES, leaves_out_rows=lambda name: name == P), "leave out rows of s.p_1"),
        (KEY, replace(RULES, leaves_out_rows=lambda name: name == C), "leave out rows of s.c_1"),
        (
            KEY,
            replace(RULES, columns=lambda name: mapped("p", 8) if name == C else AS_THEY_ARE),
            "maps p of s.c_1 otherwise than the id of s.p_1",
        ),
    ],
)
def test_why_a_key_can_not_be_repeated(
    key: ForeignKeyDefinition, rules: SourceRules, words: str
) -> None:
    found = unrepeatable(C, key, rules)
    assert found is not None
    assert words in found[0]


def test_ends_that_are_mapped_alike_can_be_repeated() -> None:
    rules = replace(RULES, columns=lambda name: mapped("p" if name == C else "id", 8))
    assert unrepeatable(C, KEY, rules) is None


def meets(
    *rules: MemberColumns, keys: tuple[UniqueKey, ...] = (), keeps_duplicates: bool = False
) -> str:
    children = [(Member(str(n), C), of) for n, of in enumerate(rules)]
    parent = Table("m", "p", (), keys, "")
    found = meeting(KEY, children, TableName("m", "p"), [parent], keeps_duplicates=keeps_duplicates)
    return "" if found is None else found[0]


def test_shards_with_the_same_keys_are_told_unless_something_keeps_them_apart() -> None:
    unique = (UniqueKey("PRIMARY", ("id",)),)
    assert not meets(AS_THEY_ARE)
    assert "no unique key" in meets(AS_THEY_ARE, AS_THEY_ARE)
    assert not meets(AS_THEY_ARE, AS_THEY_ARE, keys=unique)
    assert "takes for one row" in meets(
        AS_THEY_ARE, AS_THEY_ARE, keys=unique, keeps_duplicates=True
    )
    assert not meets(mapped("p", 1), mapped("p", 2))
    assert "no unique key" in meets(mapped("p", 1), mapped("p", 1))
    apart = [MemberColumns((ExtractedColumn("of", value),)) for value in "12"]
    assert not meets(*apart)


def spread(action: str, *key: str, child: tuple[str, ...] = ("p", "shop")) -> list[tuple[str, str]]:
    definition = f"CONSTRAINT `k` FOREIGN KEY (`p`) REFERENCES `p` (`id`) {action}"
    made = Table(
        "m",
        "c",
        tuple(Column(c, "int") for c in child),
        (),
        f"CREATE TABLE `c` (\n  {definition}\n)",
    )
    parent = Table("m", "p", (), (UniqueKey("PRIMARY", key),), "")
    return spreading(made, {TableName("m", "p"): parent})


def test_keys_of_a_target_that_reach_rows_of_other_shards() -> None:
    assert spread("ON DELETE CASCADE", "id") == []
    assert spread("", "id", "shop") == []
    [(finding, remedy)] = spread("ON DELETE CASCADE", "id", "shop")
    assert finding.startswith(
        "the foreign key k of m.c refers to columns (`id`) that are no unique"
    )
    assert remedy == (
        "ALTER TABLE `m`.`c` DROP FOREIGN KEY `k`; ALTER TABLE `m`.`c` ADD FOREIGN KEY"
        " (`p`, `shop`) REFERENCES `m`.`p` (`id`, `shop`) ON DELETE CASCADE;"
    )
    # SET NULL would also empty the extracted column, and a child may lack it.
    for found in (
        spread("ON DELETE SET NULL", "id", "shop"),
        spread("ON DELETE CASCADE", "id", "shop", child=("p",)),
    ):
        assert found[0][1].startswith("Let it refer to a unique key of m.p, or drop it: ALTER")
