"""Which modes a target gets for a statement of another server."""

from __future__ import annotations

import pytest

from replicator.mysql.server_kind import ServerKind, kind_of
from replicator.mysql.session_context.sql_modes import UnknownModeError, modes_for, without_reading

ORACLE_OF_MARIADB = 1 << 9
NO_ZERO_DATE = 1 << 24
STRICT = 1 << 21
EMPTY_STRING_IS_NULL = 1 << 32


def given(sql_mode: int, *, mariadb: bool = True, to: ServerKind = ServerKind.MARIADB) -> set[str]:
    return set(modes_for(sql_mode, mariadb=mariadb, target=to))


def test_what_changes_the_meaning_is_given() -> None:
    assert given(1 << 2 | 1 << 19) == {"ANSI_QUOTES", "NO_AUTO_VALUE_ON_ZERO"}


def test_what_only_warned_there_does_not_refuse_here() -> None:
    assert given(NO_ZERO_DATE) == set()
    assert given(NO_ZERO_DATE | STRICT) == {"NO_ZERO_DATE"}


@pytest.mark.parametrize("mode", [ORACLE_OF_MARIADB, EMPTY_STRING_IS_NULL])
def test_a_meaning_that_the_target_does_not_have_is_refused(mode: int) -> None:
    assert len(given(mode)) == 1
    with pytest.raises(UnknownModeError, match="which a target of the kind MySQL does not have"):
        given(mode, to=ServerKind.MYSQL)


def test_the_same_bit_may_be_another_mode() -> None:
    """Bit 32 is TIME_TRUNCATE_FRACTIONAL in MySQL, whose ORACLE only stands for others."""
    assert given(ORACLE_OF_MARIADB, mariadb=False) == {"TIME_ROUND_FRACTIONAL"}
    assert given(EMPTY_STRING_IS_NULL, mariadb=False) == set()


def test_fractions_of_seconds_are_rounded_as_at_the_source() -> None:
    assert given(0, mariadb=True, to=ServerKind.MYSQL) == {"TIME_TRUNCATE_FRACTIONAL"}
    assert given(1 << 34, mariadb=True, to=ServerKind.MYSQL) == set()
    assert given(0, mariadb=False, to=ServerKind.MYSQL) == set()
    assert given(0, mariadb=False) == {"TIME_ROUND_FRACTIONAL"}


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("10.11.6-MariaDB-log", ServerKind.MARIADB),
        ("8.0.11-TiDB-v7.5.1", ServerKind.TIDB),
        ("5.6.24-log", ServerKind.MYSQL_BEFORE_8),
        ("9.7.4", ServerKind.MYSQL),
    ],
)
def test_kinds_of_servers(version: str, kind: ServerKind) -> None:
    assert kind_of(version) is kind


def test_modes_that_do_not_say_how_a_text_is_read() -> None:
    strict, escapes, rounds, empty = 1 << 21, 1 << 20, 1 << 34, 1 << 32
    kept = without_reading(strict | escapes | rounds | empty, mariadb=True)
    assert kept == strict | rounds
    # The same bit is TIME_TRUNCATE_FRACTIONAL in MySQL.
    assert without_reading(escapes | empty, mariadb=False) == empty
