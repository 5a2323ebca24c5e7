"""Rows that are in the way of new unique keys."""

from __future__ import annotations

import pytest

from replicator.downstream.ddl.double_rows import removals
from replicator.mysql.names import TableName
from replicator.schema.structure.structure import Column, Table, UniqueKey

ID = UniqueKey("PRIMARY", ("id",))
PAIR = UniqueKey("u", ("a", "B"))


def table(*keys: UniqueKey) -> Table:
    return Table("d", "t", tuple(Column(name, "int") for name in ("id", "a", "b")), keys, "")


def test_one_row_of_each_value_stays() -> None:
    assert removals(TableName("d", "x"), table(ID), table(ID, PAIR), ("a",)) == (
        "DELETE a FROM `d`.`x` AS a JOIN (SELECT `a` AS v0, `B` AS v1, MIN(`id`) AS kept"
        " FROM `d`.`x` WHERE `a` IS NOT NULL AND `B` IS NOT NULL GROUP BY `a`, `B`"
        " HAVING COUNT(*) > 1) AS d ON a.`a` = d.v0 AND a.`B` = d.v1 WHERE a.`id` <> d.kept",
    )


@pytest.mark.parametrize(
    ("present", "new"),
    [
        ([ID, UniqueKey("v", ("B", "a"))], PAIR),
        ([ID], UniqueKey("u", ("a",), prefix=True)),
        ([ID], UniqueKey("u", ("a",))),
        ([ID], UniqueKey("u", ("a", "b", "c"))),
        ([UniqueKey("PRIMARY", ("id", "b"))], PAIR),
        ([], PAIR),
    ],
)
def test_no_row_is_removed(present: list[UniqueKey], new: UniqueKey) -> None:
    found = removals(TableName("d", "x"), table(*present), table(*present, new), ("a", "b"))
    assert found == ()
