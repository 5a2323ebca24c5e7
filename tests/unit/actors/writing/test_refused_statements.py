"""What a statement that the target has refused does besides adding keys."""

from __future__ import annotations

import pytest

from actors.writing.refused_statements import kind_of_refusal, only_adds_keys


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
def test_an_error_about_rows_is_told_from_one_about_the_statement(code: int) -> None:
    assert kind_of_refusal(code, ["ALTER TABLE t MODIFY v JSON"]) == "rows"
    assert kind_of_refusal(code, ["ALTER TABLE t ADD UNIQUE (v)"]) == "keys"


@pytest.mark.parametrize(
    ("code", "kind"),
    [(1064, "other"), (1071, "other"), (8200, "other"), (1060, "name"), (1142, "privilege")],
)
def test_other_errors_have_remedies_of_their_own(code: int, kind: str) -> None:
    assert kind_of_refusal(code, ["ALTER TABLE t ADD p POINT"]) == kind
