"""Whether a new column gives older rows of a shard what they have on the target."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replicator.ddl.parser import table_text, tokens
from replicator.ddl.parser.statement_kinds import classify
from replicator.schema.effects.column_values import (
    keyed_values,
    other_values,
    queued_values,
    value_clause,
)
from replicator.schema.effects.touched_parts import copied_otherwise
from replicator.schema.structure.structure import Column, Table, UniqueKey


def table(definition: str) -> Table:
    sql = f"CREATE TABLE `t` (\n  `id` int(11) NOT NULL,\n  `c` {definition},\n  KEY `c` (`c`)\n)"
    kind = definition.split(" ", 1)[0]
    return Table("s", "t", (Column("id", "int"), Column("c", kind)), (), sql)


SAME = [
    ("float NOT NULL DEFAULT 0.5", "double NOT NULL DEFAULT 0.5"),
    ("float DEFAULT NULL", "double DEFAULT NULL"),
    ("float DEFAULT 0.1", "float DEFAULT 0.1"),
    ("int(11) DEFAULT 7", "bigint(20) DEFAULT 7 COMMENT 'DEFAULT 9'"),
    ("varchar(9) DEFAULT '7'", "int(11) DEFAULT 7"),
    ("int NOT NULL", "bigint NOT NULL COMMENT 'x'"),
    ("decimal(12,2) DEFAULT 1.50", "decimal(16,4) DEFAULT 1.5000"),
    (
        "datetime DEFAULT '2021-01-01 00:00:00'",
        "datetime(3) DEFAULT '2021-01-01 00:00:00.000'",
    ),
    ("timestamp NULL DEFAULT current_timestamp() ON UPDATE current_timestamp()",) * 2,
    ("timestamp DEFAULT NULL ON UPDATE current_timestamp()", "timestamp DEFAULT NULL"),
    ("int GENERATED ALWAYS AS (`id` + 1) STORED",) * 2,
    ("json DEFAULT (json_array(1,2)) CHECK (json_valid(`c`))", "json DEFAULT (json_array(1,2))"),
]
OTHER = [
    ("float NOT NULL DEFAULT 0.1", "double NOT NULL DEFAULT 0.1"),
    ("double DEFAULT 1e300", "float DEFAULT 1e300"),
    ("float GENERATED ALWAYS AS (`id` / 3)", "double GENERATED ALWAYS AS (`id` / 3)"),
    ("int DEFAULT 9", "int DEFAULT 7"),
    ("decimal(12,2) DEFAULT 1.55", "decimal(16,1) DEFAULT 1.6"),
    ("int DEFAULT NULL", "int NOT NULL"),
    ("int DEFAULT NULL", "int NOT NULL DEFAULT 0"),
    ("varchar(9) DEFAULT 'a'", "varchar(9) DEFAULT 'A'"),
    ("int GENERATED ALWAYS AS (`id` + 1) STORED", "int GENERATED ALWAYS AS (`id` + 2) STORED"),
    ("int DEFAULT NULL", "int GENERATED ALWAYS AS (`id` + 1) VIRTUAL"),
]


@pytest.mark.parametrize(("shard", "target"), SAME)
def test_the_same_values(shard: str, target: str) -> None:
    assert other_values(table(shard), table(target), ["C"]) == ()


@pytest.mark.parametrize(("shard", "target"), OTHER)
def test_other_values(shard: str, target: str) -> None:
    assert other_values(table(shard), table(target), ["c"]) == ("c",)
    assert other_values(table(shard), table(target), ["id", "gone"]) == ()


def test_new_columns_of_a_key_that_differ_from_the_target() -> None:
    five, six = table("int NOT NULL DEFAULT 5"), table("int NOT NULL DEFAULT 6")
    key = UniqueKey("PRIMARY", ("id", "c"))
    before, keyed = replace(six, columns=six.columns[:1]), replace(six, keys=(key,))
    target = replace(five, keys=(key,))
    assert keyed_values(["C"], before, six, five) == ()
    assert keyed_values(["C"], before, six, target) == ("C",)
    assert keyed_values(["C"], six, six, target) == ()
    assert keyed_values(["C"], before, five, target) == ()
    assert keyed_values(["C"], before, keyed, before) == ("C",)
    assert keyed_values(["C"], before, None, target) == ("C",)


def test_queued_columns_that_a_key_gets() -> None:
    plain = table("int NOT NULL DEFAULT 5")
    keyed = replace(plain, keys=(UniqueKey("PRIMARY", ("id", "c")),))
    other = replace(plain, keys=(UniqueKey("PRIMARY", ("id",)),))
    assert queued_values(["C"], keyed, other) == ("c",)
    assert queued_values(["C"], plain, other) == ("c",), "all columns find a row without a key"
    assert queued_values(["id"], keyed, other) == ()
    assert queued_values(["former"], keyed, other) == ("c",), "it may be a new name"
    assert queued_values(["c"], keyed, keyed) == ()
    assert queued_values(["c"], plain, replace(plain, columns=())) == ()
    assert queued_values([], keyed, other) == queued_values(["c"], None, other) == ()


def test_the_text_of_a_wide_table_is_taken_apart_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is as long as the table is wide: for each column anew, it would take minutes."""
    texts = []

    def counted(sql: str, *, tidb_comments: bool) -> tuple[tokens.Token, ...]:
        texts.append(sql)
        return tokens.tokenise(sql, tidb_comments=tidb_comments)

    monkeypatch.setattr(table_text, "tokenise", counted)
    names = [f"wide_{number}" for number in range(200)]
    lines = ",\n".join(f"`{name}` int DEFAULT {number}" for number, name in enumerate(names))
    columns = tuple(Column(name, "int") for name in names)
    table = Table("s", "wide", columns, (), f"CREATE TABLE `wide` (\n{lines}\n)")
    clauses = [value_clause(table, name.upper()) for name in names]
    assert clauses == [f"DEFAULT {number}" for number in range(200)]
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("actions", "why"),
    [
        (("CHANGE c d INT, ADD e INT", "MODIFY e BIGINT", "ADD UNIQUE KEY (e)"), None),
        (("CHANGE c d INT", "ADD c INT"), None),
        (("DROP c, CHANGE d c INT",), None),
        (("RENAME INDEX i TO k",), None),
        (("ADD e INT, RENAME COLUMN c TO d",), "RENAME column c"),
        (("DROP COLUMN c, ADD d INT, ADD COLUMN C BIGINT",), "drop column c"),
        (("DROP c", "ADD (d INT, c INT)"), "drop column c"),
    ],
)
def test_a_tool_copies_rows_by_the_names_of_columns(
    actions: tuple[str, ...], why: str | None
) -> None:
    statements = [classify(f"ALTER TABLE t {action}", default_schema="s") for action in actions]
    found = copied_otherwise(statements)
    assert found is None if why is None else found is not None and why in found
