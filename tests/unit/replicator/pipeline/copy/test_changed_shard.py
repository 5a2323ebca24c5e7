"""How rows of a former structure are read from a shard that has changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replicator.mysql.names import TableName
from replicator.pipeline.copy.changed_shard import ChangedShard, ChangedTooMuchError, changed_shard
from replicator.pipeline.copy.copy_plan import (
    CopyChunk,
    TableCopy,
    boundary_query,
    chunk_query,
    plan_copy,
)
from replicator.schema.effects.traced_columns import Traced
from replicator.schema.structure.structure import Column, Table, UniqueKey

ID = Column("id", "int(11)", nullable=False)
TEXT = Column("s", "varchar(10)", "latin1", "latin1_swedish_ci")
GONE = Column("gone", "int(11)", nullable=False)
PRIMARY = UniqueKey("PRIMARY", ("id",))


def table(*columns: Column, keys: tuple[UniqueKey, ...] = (PRIMARY,)) -> Table:
    return Table("s", "t", columns, keys, "CREATE TABLE `t` ()")


def trace_of(former: Table, **now: str | None) -> Traced:
    columns = {column.name: column.name for column in former.columns} | now
    return Traced(TableName("s", "t"), columns)


def changed(former: Table, present: Table, **now: str | None) -> ChangedShard:
    return changed_shard(former, present, trace_of(former, **now), former)


def copy_of(
    former: Table, present: Table, target: Table | None = None, **now: str | None
) -> TableCopy:
    target = target or former
    found = changed_shard(former, present, trace_of(former, **now), target)
    return plan_copy("a", former, "f", target, 0, changed=found)


def test_what_was_added_is_not_read_and_what_was_dropped_is_filled() -> None:
    former = table(ID, replace(TEXT, name="spare"), GONE)
    copy = copy_of(former, table(ID, Column("new", "int(11)")), spare=None, gone=None)
    assert chunk_query(CopyChunk(copy, 0, None, None)) == b"SELECT `id`,NULL,0 FROM `s`.`t`"
    assert [column.name for column in copy.columns] == ["id", "spare", "gone"]


def test_columns_are_read_by_the_names_that_they_have_now() -> None:
    former = table(ID, TEXT)
    number, text = replace(ID, name="number"), replace(TEXT, name="text")
    key = (UniqueKey("PRIMARY", ("number",)),)
    copy = copy_of(former, table(text, number, keys=key), id="number", s="text")
    assert chunk_query(CopyChunk(copy, 1, (b"5",), None)) == (
        b"SELECT `number`,`text` FROM `s`.`t` FORCE INDEX (`PRIMARY`) WHERE `number`>5"
    )
    assert [column.name for column in copy.columns] == ["id", "s"]
    assert b"ORDER BY `number`" in boundary_query(copy, None, 10)


def test_two_columns_that_exchanged_their_names_go_back() -> None:
    former = table(ID, replace(GONE, name="a"), replace(GONE, name="b"))
    assert copy_of(former, former, a="b", b="a").selected == (b"`id`", b"`b`", b"`a`")


@pytest.mark.parametrize(
    ("before", "after", "expression", "conditions"),
    [
        (GONE, replace(GONE, type="bigint(20)"), "`c`", ["`c` BETWEEN -2147483648 AND 2147483647"]),
        (
            replace(GONE, type="tinyint(3) unsigned"),
            replace(GONE, type="int(11)", nullable=True),
            "`c`",
            ["`c` IS NOT NULL", "`c` BETWEEN 0 AND 255"],
        ),
        (
            Column("c", "decimal(6,2)"),
            Column("c", "decimal(12,4)"),
            "CAST(`c` AS DECIMAL(6,2))",
            ["(`c` IS NULL OR `c`=CAST(`c` AS DECIMAL(6,2)))"],
        ),
        (
            TEXT,
            replace(TEXT, type="text"),
            "`c`",
            ["(`c` IS NULL OR CHAR_LENGTH(`c`)<=10)"],
        ),
        (
            TEXT,
            replace(TEXT, charset="utf8mb4", collation="utf8mb4_bin"),
            "CONVERT(`c` USING latin1)",
            [
                "(`c` IS NULL OR CAST(`c` AS BINARY)="
                "CAST(CONVERT(CONVERT(`c` USING latin1) USING utf8mb4) AS BINARY))",
                "(`c` IS NULL OR CHAR_LENGTH(CONVERT(`c` USING latin1))<=10)",
            ],
        ),
        (
            replace(TEXT, type="enum('x','y')"),
            replace(TEXT, type="enum('x','y','z')"),
            "`c`",
            ["(`c` IS NULL OR `c`+0<=2)"],
        ),
        (
            Column("c", "datetime"),
            Column("c", "datetime(3)"),
            "`c`",
            ["(`c` IS NULL OR COALESCE(MICROSECOND(`c`),0)%1000000=0)"],
        ),
        (
            Column("c", "varbinary(4)"),
            Column("c", "blob"),
            "`c`",
            ["(`c` IS NULL OR OCTET_LENGTH(`c`)<=4)"],
        ),
        (GONE, replace(GONE, nullable=True), "`c`", ["`c` IS NOT NULL"]),
        (replace(GONE, nullable=True), GONE, "`c`", []),
    ],
)
def test_values_that_no_unchanged_row_has_are_left_out(
    before: Column, after: Column, expression: str, conditions: list[str]
) -> None:
    before, after = replace(before, name="c"), replace(after, name="c")
    found = changed(table(ID, before), table(ID, after))
    assert found.expressions["c"] == expression.encode()
    assert [condition.decode() for condition in found.conditions] == conditions


OTHER_KEY = (UniqueKey("PRIMARY", ("s",)),)


@pytest.mark.parametrize(
    ("former", "present", "why"),
    [
        (table(ID, TEXT), table(ID, Column("s", "int(11)")), "was varchar"),
        (table(ID, TEXT), table(ID, replace(TEXT, charset="ascii")), "was varchar"),
        (table(ID, TEXT), table(ID), "no statement that drops it"),
        (table(ID, TEXT), table(ID, replace(TEXT, generated=True)), "generated"),
        (table(ID, TEXT), table(ID, TEXT, keys=OTHER_KEY), "unique key PRIMARY"),
        (table(ID, TEXT), table(ID, TEXT, keys=()), "unique key PRIMARY"),
        (
            table(ID, TEXT, keys=OTHER_KEY),
            table(ID, replace(TEXT, collation="latin1_bin"), keys=OTHER_KEY),
            "compared by",
        ),
        (
            table(ID, replace(TEXT, type="enum('x','y')")),
            table(ID, replace(TEXT, type="enum('y','x')")),
            "was enum",
        ),
    ],
)
def test_what_values_were_must_be_told_by_what_they_are(
    former: Table, present: Table, why: str
) -> None:
    with pytest.raises(ChangedTooMuchError, match=why):
        changed(former, present)


def test_without_a_key_no_column_may_change_but_go() -> None:
    former = table(ID, TEXT, keys=())
    assert copy_of(former, table(ID, keys=()), s=None).selected == (b"`id`", b"NULL")
    for present in (table(ID, TEXT, GONE, keys=()), table(ID, replace(TEXT, type="text"), keys=())):
        with pytest.raises(ChangedTooMuchError, match="no key"):
            copy_of(former, present)


def test_a_statement_that_was_not_followed_is_named() -> None:
    trouble = replace(trace_of(table(ID)), trouble="ALTER TABLE t SOMETHING")
    with pytest.raises(ChangedTooMuchError, match="SOMETHING"):
        changed_shard(table(ID), table(ID), trouble, table(ID))
