"""The effects of each part of ``sql_mode`` on a statement, and which parts a target gets.

Each bit is the one in the status variable Q_SQL_MODE_CODE: ``sql/system_variables.h`` and
``sql_class.h`` of the servers (MODE_…), the same in MySQL and MariaDB up to bit 31 except for
IGNORE_BAD_TABLE_OPTIONS. The meaning of the modes: "Server SQL Modes" of MySQL's manual, "SQL_MODE"
in MariaDB's documentation; TiDB's modes: "SQL Mode" of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Flag, auto

from replicator.mysql.server_kind import ServerKind

ANSI_QUOTES = 1 << 2
MSSQL = 1 << 10
"""Of a MariaDB: in MySQL it is only a combination of others."""
NO_AUTO_VALUE_ON_ZERO = 1 << 19
NO_BACKSLASH_ESCAPES = 1 << 20
STRICT = 1 << 21 | 1 << 22
"""STRICT_TRANS_TABLES and STRICT_ALL_TABLES."""
PAD_CHAR_TO_FULL_LENGTH = 1 << 31


class Use(Flag):
    """How a mode that a statement ran with is treated."""

    LEAVE_OUT = auto()
    GIVE = auto()
    """Set if the target knows it; elsewhere nothing is lost without it."""
    NEED = auto()
    """Set; without this mode, a target can't execute the statement with its original meaning."""
    GIVE_WHEN_STRICT = auto()
    """As GIVE, if the session was strict: otherwise it only warned, and now it would refuse."""


@dataclass(frozen=True, slots=True)
class Mode:
    """One mode: its bit, its name, its treatment, and the reason."""

    bit: int
    name: str
    use: Use
    reason: str


_COMMON = (
    Mode(0, "REAL_AS_FLOAT", Use.NEED, "REAL is FLOAT, not DOUBLE"),
    Mode(1, "PIPES_AS_CONCAT", Use.NEED, "|| joins texts in generated columns and checks"),
    Mode(2, "ANSI_QUOTES", Use.NEED, "what stands in double quotes is a name"),
    Mode(3, "IGNORE_SPACE", Use.NEED, "names of functions are reserved words"),
    Mode(5, "ONLY_FULL_GROUP_BY", Use.LEAVE_OUT, "only allows fewer queries"),
    Mode(6, "NO_UNSIGNED_SUBTRACTION", Use.NEED, "the sign of a computed column's value"),
    Mode(7, "NO_DIR_IN_CREATE", Use.GIVE, "where files are: no row depends on it"),
    Mode(13, "NO_KEY_OPTIONS", Use.LEAVE_OUT, "only the text of SHOW CREATE TABLE"),
    Mode(14, "NO_TABLE_OPTIONS", Use.LEAVE_OUT, "only the text of SHOW CREATE TABLE"),
    Mode(15, "NO_FIELD_OPTIONS", Use.LEAVE_OUT, "only the text of SHOW CREATE TABLE"),
    Mode(16, "MYSQL323", Use.LEAVE_OUT, "only the text of SHOW CREATE TABLE"),
    Mode(17, "MYSQL40", Use.LEAVE_OUT, "only the text of SHOW CREATE TABLE"),
    Mode(18, "ANSI", Use.LEAVE_OUT, "stands for others, whose bits are there"),
    Mode(19, "NO_AUTO_VALUE_ON_ZERO", Use.NEED, "0 stays 0 in a column that counts"),
    Mode(20, "NO_BACKSLASH_ESCAPES", Use.NEED, "a backslash in a string is itself"),
    Mode(21, "STRICT_TRANS_TABLES", Use.LEAVE_OUT, "targets are always strict"),
    Mode(22, "STRICT_ALL_TABLES", Use.LEAVE_OUT, "targets are always strict"),
    Mode(23, "NO_ZERO_IN_DATE", Use.GIVE_WHEN_STRICT, "refuses values that are taken elsewhere"),
    Mode(24, "NO_ZERO_DATE", Use.GIVE_WHEN_STRICT, "refuses values that are taken elsewhere"),
    Mode(25, "ALLOW_INVALID_DATES", Use.NEED, "31 February is a date"),
    Mode(26, "ERROR_FOR_DIVISION_BY_ZERO", Use.GIVE_WHEN_STRICT, "refuses what else is NULL"),
    Mode(27, "TRADITIONAL", Use.LEAVE_OUT, "stands for others, whose bits are there"),
    Mode(28, "NO_AUTO_CREATE_USER", Use.LEAVE_OUT, "accounts are not replicated"),
    Mode(29, "HIGH_NOT_PRECEDENCE", Use.NEED, "NOT a = b is (NOT a) = b"),
    Mode(
        30, "NO_ENGINE_SUBSTITUTION", Use.LEAVE_OUT, "an engine that the target lacks may be others"
    ),
    Mode(31, "PAD_CHAR_TO_FULL_LENGTH", Use.NEED, "the value of a CHAR in an expression"),
)
_COMBINED = "stands for others, whose bits are there"
_MYSQL = (
    Mode(8, "POSTGRESQL", Use.LEAVE_OUT, _COMBINED),
    Mode(9, "ORACLE", Use.LEAVE_OUT, _COMBINED),
    Mode(10, "MSSQL", Use.LEAVE_OUT, _COMBINED),
    Mode(11, "DB2", Use.LEAVE_OUT, _COMBINED),
    Mode(12, "MAXDB", Use.NEED, "TIMESTAMP is DATETIME"),
)
_MARIADB = (
    Mode(4, "IGNORE_BAD_TABLE_OPTIONS", Use.GIVE, "a target refuses what it doesn't know"),
    Mode(8, "POSTGRESQL", Use.LEAVE_OUT, _COMBINED),
    Mode(9, "ORACLE", Use.NEED, "another language, with other types"),
    Mode(10, "MSSQL", Use.NEED, "what stands in [ ] is a name"),
    Mode(11, "DB2", Use.LEAVE_OUT, _COMBINED),
    Mode(12, "MAXDB", Use.NEED, "TIMESTAMP is DATETIME"),
    Mode(32, "EMPTY_STRING_IS_NULL", Use.NEED, "'' is NULL"),
    Mode(33, "SIMULTANEOUS_ASSIGNMENT", Use.LEAVE_OUT, "only about UPDATE"),
)
_ROUNDS_BIT = {True: 34, False: 32}
"""MariaDB's TIME_ROUND_FRACTIONAL; MySQL's TIME_TRUNCATE_FRACTIONAL, which does the opposite."""

_KNOWN_ONLY_BY = {
    "MAXDB": {ServerKind.MARIADB, ServerKind.MYSQL56},
    "ORACLE": {ServerKind.MARIADB},
    "MSSQL": {ServerKind.MARIADB},
    "IGNORE_BAD_TABLE_OPTIONS": {ServerKind.MARIADB},
    "EMPTY_STRING_IS_NULL": {ServerKind.MARIADB},
    "NO_DIR_IN_CREATE": {ServerKind.MARIADB, ServerKind.MYSQL56, ServerKind.MYSQL},
}


class UnknownModeError(Exception):
    """The target can't execute a statement with its original meaning; the text says why."""


def modes_for(sql_mode: int, *, mariadb: bool, target: ServerKind) -> Iterator[str]:
    """Yield the modes, except strictness, that a target gets for a statement with this
    ``sql_mode``.

    ``mariadb``: the source is one. Raises UnknownModeError.
    """
    strict = bool(sql_mode & STRICT)
    for mode in (*_COMMON, *(_MARIADB if mariadb else _MYSQL)):
        if not sql_mode >> mode.bit & 1 or mode.use is Use.LEAVE_OUT:
            continue
        if target in _KNOWN_ONLY_BY.get(mode.name, ServerKind):
            if strict or mode.use is not Use.GIVE_WHEN_STRICT:
                yield mode.name
        elif mode.use is Use.NEED:
            raise UnknownModeError(
                f"the statement ran with sql_mode {mode.name} ({mode.reason}), which a target of"
                f" the kind {target} does not have"
            )
    # A TiDB, and a MySQL before 8.0, rounds as a MySQL does by default: a statement that it would
    # round otherwise than the shard is refused before (`refuse_rounded_times`).
    rounds = rounds_times(sql_mode, mariadb=mariadb)
    if rounds and target is ServerKind.MARIADB:
        yield "TIME_ROUND_FRACTIONAL"
    elif not rounds and target is ServerKind.MYSQL:
        yield "TIME_TRUNCATE_FRACTIONAL"


def rounds_times(sql_mode: int, *, mariadb: bool) -> bool:
    """Whether a session rounds, not truncates, fractions of seconds that a column does not keep."""
    return bool(sql_mode >> _ROUNDS_BIT[mariadb] & 1) is mariadb


_READING = frozenset(
    {
        *("REAL_AS_FLOAT", "PIPES_AS_CONCAT", "ANSI_QUOTES", "IGNORE_SPACE", "POSTGRESQL"),
        *("ORACLE", "MSSQL", "DB2", "MAXDB", "ANSI", "NO_BACKSLASH_ESCAPES"),
        *("HIGH_NOT_PRECEDENCE", "EMPTY_STRING_IS_NULL"),
    }
)


def without_reading(sql_mode: int, *, mariadb: bool) -> int:
    """Return the modes except the ones that affect how the text of a statement is read."""
    for mode in (*_COMMON, *(_MARIADB if mariadb else _MYSQL)):
        if mode.name in _READING:
            sql_mode &= ~(1 << mode.bit)
    return sql_mode
