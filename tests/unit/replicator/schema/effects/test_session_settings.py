"""What an ALTER TABLE leaves in rows by the settings of its session."""

from __future__ import annotations

import pytest

from replicator.ddl.parser.statement_kinds import classify
from replicator.mysql.session_context.statement_context import StatementContext
from replicator.schema.effects.session_settings import compared_text, settings_of
from replicator.schema.structure.structure import Column, Table

TRUNCATES = 1 << 32
PADS = 1 << 31
BERLIN = StatementContext(time_zone="Europe/Berlin")
TABLE = Table(
    "s",
    "t",
    tuple(
        Column(name, kind)
        for name, kind in (
            *(("i", "int"), ("ts", "timestamp(6)"), ("dt", "datetime(6)"), ("tm", "time(3)")),
            *(("d", "date"), ("c", "char(9)"), ("v", "varchar(30)"), ("n", "decimal(20,6)")),
            ("whole", "datetime"),
        )
    ),
    (),
    "",
)


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        ("MODIFY ts DATETIME(6)", "time_zone Europe/Berlin"),
        ("CHANGE `ts` other DATETIME(6)", "time_zone Europe/Berlin"),
        ("MODIFY dt TIMESTAMP(6) NULL", "time_zone Europe/Berlin"),
        ("MODIFY d TIMESTAMP", "time_zone Europe/Berlin"),
        ("MODIFY v TIMESTAMP(6)", "time_zone Europe/Berlin"),
        ("MODIFY ts BIGINT", "time_zone Europe/Berlin, fractions of seconds rounded"),
        ("MODIFY ts DATETIME", "time_zone Europe/Berlin, fractions of seconds rounded"),
        ("MODIFY ts TIMESTAMP(3) NULL, MODIFY dt DATETIME", "fractions of seconds rounded"),
        ("MODIFY dt DATE", "fractions of seconds rounded"),
        ("MODIFY tm TIME(2)", "fractions of seconds rounded"),
        ("MODIFY v DATETIME(3)", "fractions of seconds rounded"),
        ("MODIFY n TIME", "fractions of seconds rounded"),
        # What is the same whatever the session has set.
        ("MODIFY ts TIMESTAMP(6) NOT NULL DEFAULT '2020-01-01'", ""),
        ("MODIFY tm TIME(6), MODIFY v DATETIME(6), MODIFY d DATETIME", ""),
        ("MODIFY whole DATE, MODIFY i BIGINT, MODIFY n DECIMAL(9, 2)", ""),
        ("ADD other TIMESTAMP, DROP ts, ADD KEY (dt), MODIFY gone DATETIME", ""),
        ("RENAME COLUMN ts TO other, MODIFY c VARCHAR(9)", ""),
    ],
)
def test_settings(actions: str, expected: str) -> None:
    statement = classify(f"ALTER TABLE t {actions}", default_schema="s")
    assert settings_of(statement, TABLE, BERLIN) == expected
    assert settings_of(statement, None, BERLIN) == ""


@pytest.mark.parametrize(
    ("actions", "context", "expected"),
    [
        ("MODIFY dt DATETIME", StatementContext(mariadb=True), "fractions of seconds truncated"),
        ("MODIFY dt DATETIME", StatementContext(TRUNCATES), "fractions of seconds truncated"),
        ("MODIFY dt DATETIME", StatementContext(), "fractions of seconds rounded"),
        ("MODIFY c VARCHAR(9)", StatementContext(PADS), "PAD_CHAR_TO_FULL_LENGTH"),
        ("MODIFY c CHAR(12), MODIFY v TEXT", StatementContext(PADS), ""),
        ("MODIFY ts DATETIME(6)", StatementContext(time_zone="UTC"), "time_zone +00:00"),
        ("MODIFY ts DATETIME(6)", StatementContext(), "time_zone +00:00"),
    ],
)
def test_each_setting(actions: str, context: StatementContext, expected: str) -> None:
    statement = classify(f"ALTER TABLE t {actions}", default_schema="s")
    assert settings_of(statement, TABLE, context) == expected


def test_a_text_has_them_as_a_comment() -> None:
    statement = classify("ALTER TABLE t MODIFY ts DATETIME(6)", default_schema="s")
    text = compared_text(statement, TABLE, BERLIN)
    assert text.endswith("/* time_zone Europe/Berlin */")
    assert classify(text.replace("<table>", "t"), default_schema="s").kind is statement.kind
