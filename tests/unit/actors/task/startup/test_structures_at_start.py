"""What a table was before an online schema change that lies behind the task's start."""

from __future__ import annotations

import pytest

from actors.task.startup.structures_at_start import TablesAtEnd
from replicator.ddl.parser.statement_kinds import classify
from replicator.mysql.names import TableName
from replicator.schema.registry.past_changes import past_changes
from replicator.schema.structure.structure import Table

T, TRASH = TableName("d", "t"), TableName("d", "_t_del")
EXCHANGE = "RENAME TABLE t TO _t_del, _t_gho TO t"


def former(*statements: str) -> Table | None:
    changes = [
        change
        for at, sql in enumerate(statements)
        for change in past_changes(classify(sql, default_schema="d"), at)
    ]
    aside = Table("d", "_t_del", (), (), "CREATE TABLE `_t_del` (`id` int(11))")
    return TablesAtEnd({}, tuple(changes), {TRASH: aside}).former(T)


@pytest.mark.parametrize(
    "statements",
    [
        (EXCHANGE,),
        ("CREATE TABLE _t_del (id INT)", "DROP TABLE _t_del", EXCHANGE, "ALTER TABLE u ADD a INT"),
        ("ALTER TABLE t ADD INDEX i (id)", EXCHANGE),
    ],
)
def test_what_was_put_aside_is_what_the_table_was(statements: tuple[str, ...]) -> None:
    found = former(*statements)
    assert found is not None
    assert (found.schema, found.name) == ("d", "t")
    assert found.create_sql == "CREATE TABLE `t` (`id` int(11))"


@pytest.mark.parametrize(
    "statements",
    [
        (),
        ("ALTER TABLE t ADD a INT", EXCHANGE),
        (EXCHANGE, "ALTER TABLE t ADD a INT"),
        (EXCHANGE, "ALTER TABLE _t_del ADD a INT"),
        (EXCHANGE, "DROP TABLE _t_del", "CREATE TABLE _t_del LIKE u"),
        ("RENAME TABLE t TO _t_del, u TO t, _t_del TO u",),
        ("RENAME TABLE t TO u, _t_gho TO t",),
        (EXCHANGE, "DROP DATABASE d"),
    ],
)
def test_what_it_was_is_not_known_otherwise(statements: tuple[str, ...]) -> None:
    assert former(*statements) is None
