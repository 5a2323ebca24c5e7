"""Which statements take a structure from another table."""

from __future__ import annotations

import pytest

from replicator.ddl.parser.classify import classify
from replicator.schema.scratch.scratch_table import is_like


@pytest.mark.parametrize(
    ("sql", "like"),
    [
        ("CREATE TABLE t1 LIKE p", True),
        ("CREATE TABLE t1 (LIKE p)", True),
        ("CREATE TABLE t1 (id INT, FOREIGN KEY (id) REFERENCES p (id))", False),
        ("CREATE TABLE t1 (id INT REFERENCES p (id))", False),
        ("CREATE TABLE t1 (id INT)", False),
    ],
)
def test_a_parent_is_no_pattern(sql: str, like: bool) -> None:
    assert is_like(classify(sql, default_schema="s")) is like
