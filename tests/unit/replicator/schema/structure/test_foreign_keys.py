"""The foreign keys of a table after its statements, and in its text."""

from __future__ import annotations

import pytest

from replicator.ddl.parser.statement_kinds import classify
from replicator.mysql.names import TableName
from replicator.schema.structure.foreign_keys import (
    Keys,
    ParentChange,
    hidden_parents,
    keys_after,
    parent_of,
    with_keys,
    with_parents_changed,
)
from replicator.schema.structure.structure import Table

CREATE = (
    "CREATE TABLE c_1 (id INT PRIMARY KEY, p INT, q INT,"
    " FOREIGN KEY (p) REFERENCES p_1 (id) ON DELETE CASCADE,"
    " CONSTRAINT own FOREIGN KEY (q) REFERENCES other.p (id) ON UPDATE SET NULL)"
)
SHOWN = (
    "CREATE TABLE `c_1` (\n  `id` int NOT NULL,\n  `p` int DEFAULT NULL,\n  PRIMARY KEY (`id`),\n"
    "  CONSTRAINT `x` FOREIGN KEY (`p`) REFERENCES `parent of a scratch table` (`id`)\n"
    ") ENGINE=InnoDB"
)


def after(*statements: str) -> dict[str, tuple[tuple[str, ...], TableName]]:
    """By name, the columns and the parent of each key."""
    keys: Keys = ()
    for sql in statements:
        keys = keys_after(keys, classify(sql, default_schema="s"))
    return {key.name: (key.columns, parent_of(key, "s")) for key in keys}


P, OTHER = TableName("s", "p_1"), TableName("other", "p")


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("ALTER TABLE c_1 ADD n INT", {"c_1_ibfk_1": (("p",), P), "own": (("q",), OTHER)}),
        ("ALTER TABLE c_1 DROP FOREIGN KEY c_1_ibfk_1", {"own": (("q",), OTHER)}),
        ("ALTER TABLE c_1 DROP CONSTRAINT OWN, DROP q", {"c_1_ibfk_1": (("p",), P)}),
        ("ALTER TABLE c_1 CHANGE p r BIGINT", {"c_1_ibfk_1": (("r",), P), "own": (("q",), OTHER)}),
        (
            "ALTER TABLE c_1 ADD FOREIGN KEY (id) REFERENCES p_1 (id)",
            {
                "c_1_ibfk_1": (("p",), P),
                "own": (("q",), OTHER),
                "c_1_ibfk_2": (("id",), P),
            },
        ),
        (
            "ALTER TABLE c_1 ADD CONSTRAINT own FOREIGN KEY IF NOT EXISTS (id) REFERENCES z (id)",
            {"c_1_ibfk_1": (("p",), P), "own": (("q",), OTHER)},
        ),
    ],
)
def test_what_a_statement_leaves(statement: str, wanted: object) -> None:
    assert after(CREATE, statement) == wanted


def test_names_of_the_server_follow_the_table() -> None:
    keys = keys_after((), classify(CREATE, default_schema="s"))
    dropped = classify("ALTER TABLE c_9 DROP FOREIGN KEY c_9_ibfk_1", default_schema="s")
    assert [key.name for key in keys_after(keys, dropped)] == ["own"]


def test_a_table_that_refers_to_itself_follows_its_columns() -> None:
    created = "CREATE TABLE t (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES t (id))"
    keys = keys_after((), classify(created, default_schema="s"))
    (key,) = keys_after(keys, classify("ALTER TABLE t CHANGE id k INT", default_schema="s"))
    assert key.parent_columns == ("k",)


def test_the_text_gets_the_keys_of_the_shard() -> None:
    keys = keys_after((), classify(CREATE, default_schema="s"))
    table = with_keys(Table("s", "c_1", (), (), SHOWN), keys)
    assert table.definition.foreign_keys == keys
    assert "scratch" not in table.create_sql
    assert with_keys(table, ()).definition.foreign_keys == ()
    assert with_keys(table, ()).definition.columns == table.definition.columns


def test_a_parent_that_gets_another_name() -> None:
    keys = keys_after((), classify(CREATE, default_schema="s"))
    table = with_keys(Table("s", "c_1", (), (), SHOWN), keys)
    changed = with_parents_changed(
        table, {P: ParentChange(P, TableName("z", "p_2"), {"id": "pid"})}
    )
    first, second = changed.definition.foreign_keys
    assert (parent_of(first, "s"), first.parent_columns) == (TableName("z", "p_2"), ("pid",))
    assert second == keys[1]


def test_a_parent_after_a_column_is_seen() -> None:
    inline = "CREATE TABLE c (id INT, p INT REFERENCES p (id) ON DELETE CASCADE)"
    assert hidden_parents(classify(inline, default_schema="s"))
    assert not hidden_parents(classify(CREATE, default_schema="s"))
