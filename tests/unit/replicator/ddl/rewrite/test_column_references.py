"""Foreign keys after a column, written as FOREIGN KEY … REFERENCES."""

from __future__ import annotations

import pytest

from replicator.ddl.parser.statement_kinds import classify
from replicator.ddl.rewrite.column_references import references_apart

CREATE = "CREATE TABLE c (id INT PRIMARY KEY, {}, KEY (p)) ENGINE=InnoDB"


def apart(sql: str, *, heeded: bool | None = True) -> str:
    return references_apart(classify(sql, default_schema="s"), heeded=heeded)


@pytest.mark.parametrize(
    ("written", "heeded", "ignored"),
    [
        (
            "p INT NOT NULL REFERENCES p (id) ON DELETE CASCADE",
            "p INT NOT NULL, FOREIGN KEY (`p`) REFERENCES p (id) ON DELETE CASCADE",
            "p INT NOT NULL",
        ),
        (
            "p INT DEFAULT (1 + 1) constraint n references s.p(id, `b`) match full",
            "p INT DEFAULT (1 + 1), constraint n FOREIGN KEY (`p`) references s.p(id, `b`)"
            " match full",
            "p INT DEFAULT (1 + 1)",
        ),
        (
            "`references` INT CONSTRAINT REFERENCES p (id), q INT",
            "`references` INT, CONSTRAINT FOREIGN KEY (`references`) REFERENCES p (id), q INT",
            "`references` INT, q INT",
        ),
        ("p INT REFERENCES p", "p INT REFERENCES p", "p INT"),
        ("p INT /*! REFERENCES p (id)*/", "p INT /*! REFERENCES p (id)*/", None),
        (
            "p INT, FOREIGN KEY (p) REFERENCES p (id)",
            "p INT, FOREIGN KEY (p) REFERENCES p (id)",
            None,
        ),
        (
            "p INT, CONSTRAINT x FOREIGN KEY (p) REFERENCES p (id)",
            "p INT, CONSTRAINT x FOREIGN KEY (p) REFERENCES p (id)",
            None,
        ),
    ],
)
def test_in_a_created_table(written: str, heeded: str, ignored: str | None) -> None:
    sql = CREATE.format(written)
    assert apart(sql) == CREATE.format(heeded)
    assert apart(sql, heeded=False) == CREATE.format(written if ignored is None else ignored)


@pytest.mark.parametrize(
    ("written", "heeded", "ignored"),
    [
        (
            "ADD p INT REFERENCES p (id)",
            "ADD p INT, ADD FOREIGN KEY (`p`) REFERENCES p (id)",
            "ADD p INT",
        ),
        (
            "ADD COLUMN IF NOT EXISTS p INT REFERENCES p (id) ON DELETE SET NULL AFTER id, DROP q",
            "ADD COLUMN IF NOT EXISTS p INT AFTER id, ADD FOREIGN KEY (`p`) REFERENCES p (id)"
            " ON DELETE SET NULL, DROP q",
            "ADD COLUMN IF NOT EXISTS p INT AFTER id, DROP q",
        ),
        (
            "ADD (p INT REFERENCES p (id), q INT REFERENCES p (id))",
            "ADD (p INT, FOREIGN KEY (`p`) REFERENCES p (id), q INT,"
            " FOREIGN KEY (`q`) REFERENCES p (id))",
            "ADD (p INT, q INT)",
        ),
        ("ADD CONSTRAINT x FOREIGN KEY (p) REFERENCES p (id)",) * 3,
        ("ADD FOREIGN KEY IF NOT EXISTS x (p) REFERENCES p (id)",) * 3,
    ],
)
def test_in_added_columns(written: str, heeded: str, ignored: str) -> None:
    sql = f"ALTER TABLE c {written}"
    assert apart(sql) == f"ALTER TABLE c {heeded}"
    assert apart(sql, heeded=False) == f"ALTER TABLE c {ignored}"


def test_nothing_changes_if_the_server_is_not_known() -> None:
    sql = CREATE.format("p INT REFERENCES p (id)")
    assert apart(sql, heeded=None) == sql


def test_other_statements_stay() -> None:
    for sql in ("CREATE TABLE c LIKE p", "DROP TABLE c", "RENAME TABLE c TO d"):
        assert apart(sql) == sql
