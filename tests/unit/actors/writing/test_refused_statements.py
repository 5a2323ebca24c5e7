"""What a statement that the target has refused does besides adding keys."""

from __future__ import annotations

import pytest

from actors.writing.refused_statements import only_adds_keys, ways
from replicator.downstream.ddl.ddl_execution import DdlRefusedError
from replicator.mysql.names import TableName

TARGET = TableName("s", "t")


@pytest.mark.parametrize(
    ("sql", "only_keys"),
    [
        ("ALTER TABLE t ADD UNIQUE KEY u (v)", True),
        ("CREATE UNIQUE INDEX u ON t (v)", True),
        ("ALTER TABLE t ADD KEY k (v), ADD CONSTRAINT c CHECK (v > 0)", True),
        ("ALTER TABLE t ADD FOREIGN KEY (v) REFERENCES p (id)", True),
        ("ALTER TABLE t MODIFY v DATE, ADD UNIQUE KEY u (w)", False),
        ("ALTER TABLE t MODIFY v INT NOT NULL", False),
        ("ALTER TABLE t ADD c INT DEFAULT 5, ADD UNIQUE (w)", False),
        ("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (v)", False),
        ("ALTER TABLE t CONVERT TO CHARACTER SET latin1", False),
    ],
)
def test_a_target_stays_as_wide_without_keys_alone(sql: str, only_keys: bool) -> None:
    assert only_adds_keys(sql) == only_keys


@pytest.mark.parametrize("code", [1062, 1138, 1365, 1416, 1526, 3140, 3751, 3819, 4025])
def test_an_error_about_rows_says_that_the_rows_stay(code: int) -> None:
    [way] = ways(DdlRefusedError(code, ""), TARGET, ["ALTER TABLE t MODIFY v JSON"], "it goes on")
    assert "Do not delete or change rows on the target" in way
    assert "--repair-now" in way


@pytest.mark.parametrize("code", [1064, 1071, 1170, 1235, 1273, 3106, 8200])
def test_a_statement_that_the_server_does_not_have_can_be_replaced(code: int) -> None:
    _, way = ways(DdlRefusedError(code, ""), TARGET, ["ALTER TABLE t ADD p POINT"], "it goes on")
    assert "binlog replace" in way
    assert "--repair-now" in way
