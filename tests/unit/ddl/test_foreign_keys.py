"""The foreign keys that a CREATE TABLE declares."""

from __future__ import annotations

import pytest

from replicator.ddl.analysis.foreign_keys import ForeignKey, declared_keys
from replicator.ddl.parser.classify import classify
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
