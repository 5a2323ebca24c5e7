"""The effects of each mode of ``sql_mode`` on a statement, and the modes that a target gets.

The bits are the ones in the status variable Q_SQL_MODE_CODE: ``sql/system_variables.h`` and
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
"""A mode of its own in MariaDB; in MySQL it is only a combination of other modes."""
NO_AUTO_VALUE_ON_ZERO = 1 << 19
NO_BACKSLASH_ESCAPES = 1 << 20
STRICT = 1 << 21 | 1 << 22
"""STRICT_TRANS_TABLES and STRICT_ALL_TABLES."""
PAD_CHAR_TO_FULL_LENGTH = 1 << 31


class Treatment(Flag):
    """What the target's session does with a mode of the source's session."""

    LEAVE_OUT = auto()
    SET_IF_KNOWN = auto()
    """Set if the target knows the mode; other targets lose nothing without it."""
    REQUIRED = auto()
    """Set; a target that lacks the mode can't execute the statement with its original meaning."""
    SET_IF_STRICT = auto()
    """As SET_IF_KNOWN, if the source's session was strict. In a session that was not, the mode only
    caused warnings, but in the target's strict session it would cause errors."""


@dataclass(frozen=True, slots=True)
class Mode:
    """A mode with its bit number, its treatment, and the reason for this treatment."""

    bit: int
    name: str
    treatment: Treatment
    reason: str


_COMMON = (
    Mode(0, "REAL_AS_FLOAT", Treatment.REQUIRED, "REAL is FLOAT, not DOUBLE"),
    Mode(
        1, "PIPES_AS_CONCAT", Treatment.REQUIRED, "|| joins texts in generated columns and checks"
    ),
    Mode(2, "ANSI_QUOTES", Treatment.REQUIRED, "what stands in double quotes is a name"),
    Mode(3, "IGNORE_SPACE", Treatment.REQUIRED, "names of functions are reserved words"),
    Mode(5, "ONLY_FULL_GROUP_BY", Treatment.LEAVE_OUT, "only allows fewer queries"),
    Mode(6, "NO_UNSIGNED_SUBTRACTION", Treatment.REQUIRED, "the sign of a computed column's value"),
    Mode(7, "NO_DIR_IN_CREATE", Treatment.SET_IF_KNOWN, "where files are: no row depends on it"),
    Mode(13, "NO_KEY_OPTIONS", Treatment.LEAVE_OUT, "only the text of SHOW CREATE TABLE"),
    Mode(14, "NO_TABLE_OPTIONS", Treatment.LEAVE_OUT, "only the text of SHOW CREATE TABLE"),
    Mode(15, "NO_FIELD_OPTIONS", Treatment.LEAVE_OUT, "only the text of SHOW CREATE TABLE"),
    Mode(16, "MYSQL323", Treatment.LEAVE_OUT, "only the text of SHOW CREATE TABLE"),
    Mode(17, "MYSQL40", Treatment.LEAVE_OUT, "only the text of SHOW CREATE TABLE"),
    Mode(18, "ANSI", Treatment.LEAVE_OUT, "stands for others, whose bits are there"),
    Mode(19, "NO_AUTO_VALUE_ON_ZERO", Treatment.REQUIRED, "0 stays 0 in a column that counts"),
    Mode(20, "NO_BACKSLASH_ESCAPES", Treatment.REQUIRED, "a backslash in a string is itself"),
    Mode(21, "STRICT_TRANS_TABLES", Treatment.LEAVE_OUT, "targets are always strict"),
    Mode(22, "STRICT_ALL_TABLES", Treatment.LEAVE_OUT, "targets are always strict"),
    Mode(23, "NO_ZERO_IN_DATE", Treatment.SET_IF_STRICT, "refuses values that are taken elsewhere"),
    Mode(24, "NO_ZERO_DATE", Treatment.SET_IF_STRICT, "refuses values that are taken elsewhere"),
    Mode(25, "ALLOW_INVALID_DATES", Treatment.REQUIRED, "31 February is a date"),
    Mode(26, "ERROR_FOR_DIVISION_BY_ZERO", Treatment.SET_IF_STRICT, "refuses what else is NULL"),
    Mode(27, "TRADITIONAL", Treatment.LEAVE_OUT, "stands for others, whose bits are there"),
    Mode(28, "NO_AUTO_CREATE_USER", Treatment.LEAVE_OUT, "accounts are not replicated"),
    Mode(29, "HIGH_NOT_PRECEDENCE", Treatment.REQUIRED, "NOT a = b is (NOT a) = b"),
    Mode(
        30,
        "NO_ENGINE_SUBSTITUTION",
        Treatment.LEAVE_OUT,
        "an engine that the target lacks may be others",
    ),
    Mode(31, "PAD_CHAR_TO_FULL_LENGTH", Treatment.REQUIRED, "the value of a CHAR in an expression"),
)
_COMBINED = "stands for others, whose bits are there"
_MYSQL = (
    Mode(8, "POSTGRESQL", Treatment.LEAVE_OUT, _COMBINED),
    Mode(9, "ORACLE", Treatment.LEAVE_OUT, _COMBINED),
    Mode(10, "MSSQL", Treatment.LEAVE_OUT, _COMBINED),
    Mode(11, "DB2", Treatment.LEAVE_OUT, _COMBINED),
    Mode(12, "MAXDB", Treatment.REQUIRED, "TIMESTAMP is DATETIME"),
)
_MARIADB = (
    Mode(
        4,
        "IGNORE_BAD_TABLE_OPTIONS",
        Treatment.SET_IF_KNOWN,
        "a target refuses what it doesn't know",
    ),
    Mode(8, "POSTGRESQL", Treatment.LEAVE_OUT, _COMBINED),
    Mode(9, "ORACLE", Treatment.REQUIRED, "another language, with other types"),
    Mode(10, "MSSQL", Treatment.REQUIRED, "what stands in [ ] is a name"),
    Mode(11, "DB2", Treatment.LEAVE_OUT, _COMBINED),
    Mode(12, "MAXDB", Treatment.REQUIRED, "TIMESTAMP is DATETIME"),
    Mode(32, "EMPTY_STRING_IS_NULL", Treatment.REQUIRED, "'' is NULL"),
    Mode(33, "SIMULTANEOUS_ASSIGNMENT", Treatment.LEAVE_OUT, "only about UPDATE"),
)
_ROUNDS_BIT = {True: 34, False: 32}
"""MariaDB's TIME_ROUND_FRACTIONAL; MySQL's TIME_TRUNCATE_FRACTIONAL, which does the opposite."""

_KNOWN_ONLY_BY = {
    "MAXDB": {ServerKind.MARIADB, ServerKind.MYSQL_BEFORE_8},
    "ORACLE": {ServerKind.MARIADB},
    "MSSQL": {ServerKind.MARIADB},
    "IGNORE_BAD_TABLE_OPTIONS": {ServerKind.MARIADB},
    "EMPTY_STRING_IS_NULL": {ServerKind.MARIADB},
    "NO_DIR_IN_CREATE": {ServerKind.MARIADB, ServerKind.MYSQL_BEFORE_8, ServerKind.MYSQL},
}


class UnknownModeError(Exception):
    """The target can't execute a statement with its original meaning; the text says why."""


def modes_for(sql_mode: int, *, mariadb: bool, target: ServerKind) -> Iterator[str]:
    """Yield the modes, except strictness, that a target gets for a statement.

    Args:
        sql_mode: the bits of the source's session.
        mariadb: whether the source is a MariaDB.

    Raises:
        UnknownModeError: the target lacks a required mode.
    """
    strict = bool(sql_mode & STRICT)
    for mode in (*_COMMON, *(_MARIADB if mariadb else _MYSQL)):
        if not sql_mode >> mode.bit & 1 or mode.treatment is Treatment.LEAVE_OUT:
            continue
        if target in _KNOWN_ONLY_BY.get(mode.name, ServerKind):
            if strict or mode.treatment is not Treatment.SET_IF_STRICT:
                yield mode.name
        elif mode.treatment is Treatment.REQUIRED:
            raise UnknownModeError(
                f"the statement ran with sql_mode {mode.name} ({mode.reason}), which a target of"
                f" the kind {target} does not have"
            )
    # TiDB, and MySQL before 8.0, always round. If the shard truncated, the statement was refused
    # before (`refuse_rounded_times`).
    rounds = rounds_times(sql_mode, mariadb=mariadb)
    if rounds and target is ServerKind.MARIADB:
        yield "TIME_ROUND_FRACTIONAL"
    elif not rounds and target is ServerKind.MYSQL:
        yield "TIME_TRUNCATE_FRACTIONAL"


def rounds_times(sql_mode: int, *, mariadb: bool) -> bool:
    """Return whether a session rounds fractions of seconds to the column's digits, or truncates."""
    return bool(sql_mode >> _ROUNDS_BIT[mariadb] & 1) is mariadb


_READING = frozenset(
    {
        *("REAL_AS_FLOAT", "PIPES_AS_CONCAT", "ANSI_QUOTES", "IGNORE_SPACE", "POSTGRESQL"),
        *("ORACLE", "MSSQL", "DB2", "MAXDB", "ANSI", "NO_BACKSLASH_ESCAPES"),
        *("HIGH_NOT_PRECEDENCE", "EMPTY_STRING_IS_NULL"),
    }
)


def without_reading(sql_mode: int, *, mariadb: bool) -> int:
    """Return the modes without the ones that change how a server parses a statement's text."""
    for mode in (*_COMMON, *(_MARIADB if mariadb else _MYSQL)):
        if mode.name in _READING:
            sql_mode &= ~(1 << mode.bit)
    return sql_mode
