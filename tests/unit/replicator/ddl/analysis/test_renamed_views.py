"""The kind of an object follows from the statements after it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replicator.ddl.analysis.renamed_views import LaterKind, later_kind
from replicator.ddl.parser.statement_kinds import classify
from replicator.mysql.names import TableName
from replicator.schema.structure.other_objects import OtherObjects


def kind_of(text: str) -> str:
    """The kind of d.v before these statements."""
    statements = [classify(sql, default_schema="d") for sql in text.split("; ")]
    found = later_kind(TableName("d", "v"), statements)
    if found.is_view is None:
        return "gone" if found.gone else f"still {found.name.table}"
    return "view" if found.is_view else "table"


@pytest.mark.parametrize(
    ("later", "kind"),
    [
        ("RENAME TABLE v TO w", "still w"),
        ("RENAME TABLE v TO w; RENAME TABLE x TO v", "still w"),
        ("RENAME TABLE x TO tmp, v TO x, tmp TO v; DROP VIEW x", "view"),
        ("RENAME TABLE v TO w; DROP TABLE w", "table"),
        ("RENAME TABLE v TO w; ALTER VIEW w AS SELECT 1", "view"),
        ("RENAME TABLE v TO w; DROP TABLE IF EXISTS w; DROP VIEW w", "view"),
        ("RENAME TABLE v TO w; DROP VIEW IF EXISTS w; TRUNCATE w", "table"),
        ("RENAME TABLE v TO w; DROP VIEW IF EXISTS w; CREATE TABLE w (a INT)", "view"),
        ("RENAME TABLE v TO w; DROP VIEW IF EXISTS w", "gone"),
        ("RENAME TABLE v TO w; CREATE VIEW IF NOT EXISTS w AS SELECT 1; DROP VIEW w", "view"),
        ("RENAME TABLE v TO w; CREATE INDEX i ON w (a)", "table"),
        ("RENAME TABLE v TO w; DROP DATABASE d", "gone"),
        ("RENAME TABLE v TO w; DROP DATABASE e; ALTER TABLE v ADD a INT", "still w"),
        ("CREATE TABLE IF NOT EXISTS v (a INT); DROP VIEW v", "view"),
    ],
)
def test_the_next_statement_that_only_one_kind_allows_shows_it(later: str, kind: str) -> None:
    assert kind_of(later) == kind


def test_a_failed_statement_shows_nothing() -> None:
    failed = replace(classify("DROP VIEW v, w", default_schema="d"), error=1051)
    assert later_kind(TableName("d", "v"), [failed]) == LaterKind(TableName("d", "v"), gone=True)


TABLES = frozenset({TableName("d", "t")})


def left(*statements: str, views: str = "") -> list[str]:
    """The kinds of these statements, and their tables, without views."""
    others = OtherObjects()
    others.know((), [TableName("d", name) for name in views.split()])
    found = (others.without(classify(sql, default_schema="d"), TABLES) for sql in statements)
    return [f"{one.kind.value}: {' '.join(t.table for t in one.tables)}" for one in found]


def test_statements_about_tables_are_without_views() -> None:
    assert left(
        "CREATE VIEW v AS SELECT 1",
        "RENAME TABLE v TO w, t TO v",
        "RENAME TABLE v TO x, w TO v",
        "CREATE TABLE IF NOT EXISTS v (a INT)",
        "DROP TABLE IF EXISTS v",
        "RENAME TABLE v TO y",
        "DROP VIEW y",
        "CREATE TABLE y (a INT)",
        "RENAME TABLE y TO v",
    ) == [
        "view: v",
        "rename table: t v",
        "rename table: v x",
        "view: ",
        "view: ",
        "view: ",
        "view: y",
        "create table: y",
        "rename table: y v",
    ]


def test_a_statement_about_no_view_leaves_a_table_what_it_is() -> None:
    assert left(
        "CREATE VIEW IF NOT EXISTS t AS SELECT 1", "DROP VIEW IF EXISTS t", "DROP TABLE t"
    ) == ["view: t", "view: t", "drop table: t"]


def test_a_view_that_the_source_has_later_is_certain_for_no_rename() -> None:
    others = OtherObjects()
    others.know((), [TableName("d", "v")])
    rename = classify("RENAME TABLE v TO w", default_schema="d")
    assert others.unclear(rename, TABLES) == [TableName("d", "v")]
    created = classify("CREATE TABLE IF NOT EXISTS v (a INT)", default_schema="d")
    assert others.unclear(created, TABLES) == [TableName("d", "v")]
    assert left("DROP TABLE IF EXISTS t, v", views="v") == ["drop table: t"]
