"""The foreign keys that statements declare, and those that an engine ignores."""

from __future__ import annotations

import pytest

from replicator.ddl.analysis.foreign_keys import ForeignKey, declared_keys
from replicator.ddl.parser.classify import classify
from replicator.ddl.parser.table_text import table_definition
from replicator.ddl.rewrite.ignored_foreign_keys import (
    altering_without_keys,
    without_foreign_keys,
    without_ignored_keys,
)
from replicator.mysql.names import TableName

P = TableName("s", "p")


def keys(sql: str) -> tuple[ForeignKey, ...] | None:
    return declared_keys(classify(sql, default_schema="s"))


@pytest.mark.parametrize(
    ("clause", "key"),
    [
        (
            "FOREIGN KEY (p) REFERENCES p (id)",
            ForeignKey(("p",), P, ("id",), "RESTRICT", "RESTRICT"),
        ),
        (
            "CONSTRAINT `to p` FOREIGN KEY by_p (p, `Shard`) REFERENCES `s`.`p` (`ID`, shard)"
            " ON UPDATE CASCADE ON DELETE SET NULL",
            ForeignKey(("p", "shard"), P, ("id", "shard"), "SET NULL", "CASCADE"),
        ),
        (
            "/*!50000 FOREIGN KEY (p) REFERENCES p (id) ON DELETE NO ACTION*/",
            ForeignKey(("p",), P, ("id",), "RESTRICT", "RESTRICT"),
        ),
        (
            "FOREIGN KEY (p) REFERENCES other.q (id) ON DELETE CASCADE",
            ForeignKey(("p",), TableName("other", "q"), ("id",), "CASCADE", "RESTRICT"),
        ),
    ],
)
def test_keys_are_read(clause: str, key: ForeignKey) -> None:
    head = "CREATE TABLE c (id INT PRIMARY KEY DEFAULT (1), p INT"
    assert keys(f"{head}, {clause}, KEY (p)) ENGINE=InnoDB") == (key,)
    assert keys(f"{head}, {clause}, KEY k (p), {clause})") == (key, key)
    assert keys(f"{head}) COMMENT='{clause.replace(chr(39), '')}'") == ()


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE c (id INT, p INT REFERENCES p (id))",
        "CREATE TABLE c (id INT, p INT, FOREIGN KEY (p) REFERENCES p)",
        "CREATE TABLE c (id INT, p INT, FOREIGN KEY (p, id) REFERENCES p (id))",
        "CREATE TABLE c (id INT, p INT, FOREIGN KEY (p) REFERENCES p (id) MATCH FULL)",
        "CREATE TABLE c (id INT, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE DROP)",
        "CREATE TABLE c (id INT, FOREIGN KEY (f(p)) REFERENCES p (id))",
    ],
)
def test_what_may_mean_something_else_is_not_read(sql: str) -> None:
    assert keys(sql) is None


def test_a_copied_structure_has_no_foreign_keys() -> None:
    assert keys("CREATE TABLE c LIKE s.d") == ()


KEY = "FOREIGN KEY (p) REFERENCES x (id) ON DELETE CASCADE"


@pytest.mark.parametrize(
    ("items", "wanted"),
    [
        (f"id INT, p INT, {KEY}", "id INT, p INT, KEY (`p`)"),
        (f"p INT, CONSTRAINT k {KEY}, id INT", "p INT, KEY `k` (`p`), id INT"),
        (f"p INT, {KEY}, KEY (p, id), id INT", "p INT, KEY (p, id), id INT"),
        (f"{KEY}, p INT UNIQUE", "p INT UNIQUE"),
        (f"p INT, {KEY}, CONSTRAINT j {KEY}", "p INT, KEY (`p`)"),
        ("p INT, KEY (p)", "p INT, KEY (p)"),
    ],
)
def test_a_created_table_has_an_index_in_place_of_the_key(items: str, wanted: str) -> None:
    for engine, expected in (("MyISAM", wanted), ("innodb", items)):
        parsed = classify(f"CREATE TABLE t ({items}) ENGINE={engine}", default_schema="s")
        assert without_ignored_keys(parsed) == f"CREATE TABLE t ({expected}) ENGINE={engine}"


@pytest.mark.parametrize(
    ("items", "wanted"),
    [
        (f"id INT, p INT, {KEY}", "id INT, p INT"),
        (f"p INT, CONSTRAINT k {KEY}, id INT", "p INT, id INT"),
        (f"p INT, {KEY}, KEY (p, id), id INT", "p INT, KEY (p, id), id INT"),
        (f"{KEY}, p INT UNIQUE", "p INT UNIQUE"),
        ("p INT, KEY (p)", "p INT, KEY (p)"),
    ],
)
def test_a_copied_table_has_nothing_in_place_of_the_key(items: str, wanted: str) -> None:
    parsed = classify(f"CREATE TABLE t ({items})", default_schema="s")
    assert without_foreign_keys(parsed) == f"CREATE TABLE t ({wanted})"


@pytest.mark.parametrize(
    ("actions", "wanted"),
    [
        (f"ADD CONSTRAINT k {KEY}", "ADD KEY `k` (`p`)"),
        (f"ADD {KEY.replace('(p)', '(a)', 1)}", ""),
        (f"ADD {KEY.replace('(p)', '(A)', 1)}, ADD c INT", "ADD c INT"),
        (f"ADD c INT, ADD {KEY}, ADD INDEX i (p)", "ADD c INT, ADD INDEX i (p)"),
        ("DROP FOREIGN KEY k", "DROP FOREIGN KEY k"),
    ],
)
def test_an_altered_table_gets_an_index_in_place_of_the_key(actions: str, wanted: str) -> None:
    table = table_definition("CREATE TABLE `t` (\n  `a` int,\n  `b` int,\n  KEY `ab` (`a`,`b`)\n)")
    parsed = classify(f"ALTER TABLE t {actions}", default_schema="s")
    expected = f"ALTER TABLE t {wanted}" if wanted else ""
    assert altering_without_keys(parsed, table.keys) == expected
