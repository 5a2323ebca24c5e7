"""Names that differ in case only, where a server takes them for one."""

from __future__ import annotations

import pytest

from replicator.checks.checked_task import SourceToCheck
from replicator.checks.routes import check_source_names
from replicator.ddl.parser.statement import ParsedStatement
from replicator.ddl.parser.statement_kinds import classify
from replicator.ddl.rewrite.normalise import normalise
from replicator.ddl.rewrite.retarget import retarget
from replicator.mysql.connection.asyncio_connection import DatabaseAddress
from replicator.mysql.names import TableName, folded
from replicator.routing.allow_list import AllowList
from replicator.routing.routes import Router, Routes
from replicator.schema.effects.ddl_effects import effects_of
from replicator.schema.registry.past_changes import past_changes
from replicator.schema.registry.registry import TargetNames

MEMBERS = [TableName("shop", "t1"), TableName("shop", "t2")]


def parsed(sql: str, *, folds: bool = True) -> ParsedStatement:
    return classify(sql, default_schema="SHOP", folds_names=folds)


def route(name: TableName) -> TableName | None:
    if name.schema != "shop":
        return None
    return TableName("m", name.table and "t")


@pytest.mark.parametrize(
    ("name", "same"),
    [("Id", "ID"), ("É", "é"), ("ΛΌΓΟΣ", "λόγοσ"), ("İd", "id"), ("Я", "я"), ("ß", "ß")],
)
def test_names_that_are_one_without_their_case(name: str, same: str) -> None:
    assert folded(name) == folded(same)


@pytest.mark.parametrize(
    ("name", "other"),
    [("e", "é"), ("ß", "ss"), ("a", "å"), ("\N{GREEK SMALL LETTER FINAL SIGMA}", "Σ")],
)
def test_names_that_are_two_without_their_case(name: str, other: str) -> None:
    assert folded(name) != folded(other)


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("ALTER TABLE T1 ADD C INT", "shop.t1"),
        ("ALTER TABLE `Other`.T1 ADD C INT", "other.t1"),
        ("ALTER TABLE T1 RENAME TO NEW.T2", "shop.t1 new.t2"),
        ("RENAME TABLE T1 TO T2, T2 TO T3", "shop.t1 shop.t2 shop.t2 shop.t3"),
        ("CREATE TABLE T1 LIKE Other.T2", "shop.t1 other.t2"),
        ("CREATE TABLE T1 (A INT REFERENCES Parent (Id))", "shop.t1 shop.parent"),
        ("DROP TABLE T1, Other.T2", "shop.t1 other.t2"),
        ("TRUNCATE T1", "shop.t1"),
        ("CREATE INDEX I ON T1 (A)", "shop.t1"),
        ("INSERT INTO T1 VALUES (1)", "shop.t1"),
    ],
)
def test_tables_are_named_in_lower_case(sql: str, tables: str) -> None:
    assert " ".join(f"{t.schema}.{t.table}" for t in parsed(sql).tables) == tables


def test_elsewhere_tables_are_named_as_written() -> None:
    (table,) = parsed("DROP TABLE T1", folds=False).tables
    assert (table.schema, table.table) == ("SHOP", "T1")


def test_a_database_is_named_in_lower_case() -> None:
    for sql in ("DROP DATABASE SHOP", "ALTER DATABASE COLLATE utf8mb4_bin"):
        schema = parsed(sql).schema
        assert schema is not None
        assert schema.name == "shop"


def test_the_table_before_a_column_may_be_in_any_case() -> None:
    statement = parsed("ALTER TABLE T1 ADD CHECK (t1.A > 0 AND Shop.T1.B > T2.C)")
    assert retarget(statement, lambda *_: ("m", "t")) == (
        "ALTER TABLE `m`.`t` ADD CHECK (`A` > 0 AND `B` > T2.C)"
    )
    told_apart = parsed("ALTER TABLE T1 ADD CHECK (t1.A > 0)", folds=False)
    assert "t1.A" in retarget(told_apart, lambda *_: ("m", "t"))


def test_parents_in_another_case_are_the_same_parent() -> None:
    one, other = (
        parsed(f"ALTER TABLE T1 ADD FOREIGN KEY (A) REFERENCES {parent} (Id)")
        for parent in ("Parent", "SHOP.PARENT")
    )
    assert normalise(one) == normalise(other)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("ALTER TABLE T1 ADD C INT", "alter shop.t1"),
        ("DROP TABLE T2", "drop shop.t2"),
        ("RENAME TABLE T1 TO T9", "rename shop.t1"),
        ("DROP DATABASE Shop", "drop shop.t1, drop shop.t2, drop schema shop."),
    ],
)
def test_effects_are_those_on_the_shards(sql: str, expected: str) -> None:
    found = effects_of(parsed(sql), route, MEMBERS)
    assert ", ".join(f"{effect.kind.value} {effect.table}" for effect in found) == expected


def test_a_table_that_is_renamed_to_itself_stays() -> None:
    assert effects_of(parsed("ALTER TABLE T1 RENAME TO t1"), route, MEMBERS) == ()
    assert effects_of(parsed("ALTER TABLE t1 RENAME t1"), route, MEMBERS) == ()
    assert effects_of(parsed("ALTER TABLE T3 RENAME TO t4"), route, MEMBERS) != ()


def test_past_changes_are_those_of_the_shards() -> None:
    (altered,) = past_changes(parsed("ALTER TABLE T1 ADD C INT"), 4)
    (dropped,) = past_changes(parsed("DROP DATABASE SHOP"), 4)
    assert [c.concerns(MEMBERS[0]) for c in (altered, dropped)] == [True, True]


@pytest.mark.parametrize(
    ("name", "other"),
    [
        (TableName("shop", "Orders"), "shop.orders"),
        (TableName("Shop", "bills"), "shop"),
        (TableName("SHOP", ""), "shop"),
        (TableName("shop", "orders"), None),
        (TableName("shop", "bills"), None),
        (TableName("shop", ""), None),
    ],
)
def test_targets_that_are_one_to_their_server(name: TableName, other: str | None) -> None:
    for folds, expected in ((True, other), (False, None)):
        names = TargetNames(folds=folds)
        assert names.clash(TableName("shop", "orders")) is None
        assert names.clash(name) == expected
        # Told again as often as it is asked.
        assert names.clash(name) == expected


def test_case_sensitive_is_warned_of_where_names_have_no_case() -> None:
    for folds, sensitive, states in (
        (True, True, ["warning"]),
        (True, False, []),
        (False, True, []),
    ):
        routes = Routes([], case_sensitive=sensitive)
        router = Router(AllowList(case_sensitive=sensitive), routes)
        source = SourceToCheck("a", DatabaseAddress("h", 1, "u"), router, routes, 1)
        assert [r.state for r in check_source_names(source, folds=folds)] == states
