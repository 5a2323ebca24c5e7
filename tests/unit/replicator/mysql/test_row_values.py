"""Errors of servers, without the values of rows that they quote."""

from __future__ import annotations

import pytest
from pymysql.constants import CR

from replicator.mysql.row_values import without_values


@pytest.mark.parametrize(
    ("code", "text", "shown"),
    [
        (1062, "Duplicate entry 'ada' for key 'mail'", "Duplicate entry '…' for key 'mail'"),
        (
            1062,
            "Duplicate entry 'it's' for key 't.PRIMARY'",
            "Duplicate entry '…' for key 't.PRIMARY'",
        ),
        (
            1062,
            "Duplicate entry 'a' for key 'b' for key 'mail'",
            "Duplicate entry '…' for key 'mail'",
        ),
        (
            1366,
            "Incorrect integer value: 'ada' for column `d`.`t`.`c` at row 1",
            "Incorrect integer value: '…' for column `d`.`t`.`c` at row 1",
        ),
        (
            1366,
            "Incorrect string value: '\\xE4\\xB8' for column 'c' at row 1",
            "Incorrect string value: '…' for column 'c' at row 1",
        ),
        (1292, "Truncated incorrect DOUBLE value: 'ada'", "Truncated incorrect DOUBLE value: '…'"),
        (1526, "Table has no partition for value 5", "Table has no partition for value …"),
        (1300, "Invalid utf8mb4 character string: 'FF61'", "Invalid utf8mb4 character string: '…'"),
        (
            1690,
            "BIGINT UNSIGNED value is out of range in '(`d`.`t`.`a` - 77)'",
            "BIGINT UNSIGNED value is out of range in '…'",
        ),
        (1690, "constant 256 overflows tinyint", "constant … overflows tinyint"),
        (1064, "an error near 'ada)' at line 1", "an error near '…' at line 1"),
        (1406, "Data too long for column 'c' at row 1", "Data too long for column 'c' at row 1"),
        (1048, "Column 'c' cannot be null", "Column 'c' cannot be null"),
        (1364, "Field 'c' doesn't have a default value", "Field 'c' doesn't have a default value"),
        (
            3819,
            "Check constraint 't_chk_1' is violated.",
            "Check constraint 't_chk_1' is violated.",
        ),
        (
            1452,
            "a foreign key constraint fails (`d`.`t`, CONSTRAINT `f` FOREIGN KEY (`a`))",
            "a foreign key constraint fails (`d`.`t`, CONSTRAINT `f` FOREIGN KEY (`a`))",
        ),
        (1644, "no row of ada", "… (the text of a SIGNAL of the target)"),
        (
            1153,
            "a statement of 50059 bytes is longer than the target's max_allowed_packet",
            "a statement of 50059 bytes is longer than the target's max_allowed_packet",
        ),
        (9999, "something new about 'ada' and 'bob's' row", "something new about '…' row"),
        (
            int(CR.CR_CONN_HOST_ERROR),
            "Can't connect to MySQL server on 'db.example' (111)",
            "Can't connect to MySQL server on 'db.example' (111)",
        ),
        (
            1142,
            "INSERT command denied to user 'r'@'h' for table 't'",
            "INSERT command denied to user 'r'@'h' for table 't'",
        ),
    ],
)
def test_values_are_hidden_and_names_stay(code: int, text: str, shown: str) -> None:
    assert without_values(text, code) == shown
