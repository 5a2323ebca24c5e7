"""Which statements number rows."""

from __future__ import annotations

import pytest

from replicator.ddl.analysis.computed_values import numbered_columns
from replicator.ddl.parser.statement_kinds import classify


@pytest.mark.parametrize(
    ("action", "existing"),
    [
        ("ADD id INT AUTO_INCREMENT PRIMARY KEY", [""]),
        ("ADD (a DECIMAL(9, 2), id INT AUTO_INCREMENT UNIQUE)", [""]),
        ("DROP b, ADD COLUMN id SERIAL, MODIFY COLUMN `a``b` INT AUTO_INCREMENT", ["", "a`b"]),
        ("CHANGE COLUMN IF EXISTS a b INT AUTO_INCREMENT COMMENT 'x'", ["a"]),
        ("MODIFY a INT AUTO_INCREMENT, AUTO_INCREMENT = 5", ["a"]),
        ("AUTO_INCREMENT 5", []),
        ("ENGINE=InnoDB AUTO_INCREMENT=5", []),
        ("ADD `auto_increment` INT, ADD a INT COMMENT 'AUTO_INCREMENT'", []),
        ("ALTER a SET DEFAULT 5", []),
    ],
)
def test_columns_that_number_rows(action: str, existing: list[str]) -> None:
    statement = classify(f"ALTER TABLE t {action}", default_schema="s")
    assert [column.existing for column in numbered_columns(statement)] == existing


@pytest.mark.parametrize(
    "sql", ["CREATE TABLE t (id INT AUTO_INCREMENT KEY)", "CREATE INDEX i ON t (a)"]
)
def test_new_tables_have_no_rows(sql: str) -> None:
    assert numbered_columns(classify(sql, default_schema="s")) == ()


@pytest.mark.parametrize(
    ("action", "name"),
    [
        ("ADD id INT AUTO_INCREMENT", "id"),
        ("ADD COLUMN IF NOT EXISTS `id` INT(9) UNSIGNED AUTO_INCREMENT", "id"),
        ("ADD (a DECIMAL(9, 2), id INT(9) AUTO_INCREMENT UNIQUE)", "id"),
        ("ADD (id SERIAL, b INT)", "id"),
        ("DROP id, ADD id INT AUTO_INCREMENT PRIMARY KEY", "id"),
        ("MODIFY id INT AUTO_INCREMENT", "id"),
        ("CHANGE a id INT AUTO_INCREMENT", "id"),
    ],
)
def test_names_of_new_columns(action: str, name: str) -> None:
    [column] = numbered_columns(classify(f"ALTER TABLE t {action}", default_schema="s"))
    assert column.name == name
