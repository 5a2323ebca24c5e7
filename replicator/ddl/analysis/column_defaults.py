"""Columns whose defaults may give existing rows other values on the target than in the shards.

Existing rows get the default, and no server logs their changes, so the values of the target and of
its shards can differ. Sources for the functions: "Information Functions", "Miscellaneous Functions"
and "Mathematical Functions" of MySQL's manual; MariaDB's pages of the same names, UUID_v4 and
"Sequence Functions".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest

from replicator.ddl.parser.alter_actions import defined_columns, outside_brackets
from replicator.ddl.parser.statement import ParsedStatement, Span
from replicator.ddl.parser.tokens import Token, TokenKind, tokenise
from replicator.mysql.column_types import FRACTIONAL, SQL_TYPES, Literal

_FUNCTIONS = frozenset(
    {"UUID", "UUID_SHORT", "UUIDV4", "UUIDV7", "UUID_V4", "UUID_V7", "SYS_GUID"}
    | {"RAND", "RANDOM_BYTES"}
    # These depend on the session or the server that adds the column.
    | {"CONNECTION_ID", "LAST_INSERT_ID", "USER", "SESSION_USER", "SYSTEM_USER", "VERSION"}
    | {"DATABASE", "SCHEMA", "NEXTVAL", "LASTVAL"}
)
_WORDS = frozenset({"CURRENT_USER", "CURRENT_ROLE", "NEXT", "PREVIOUS"})
"""Functions that need no parentheses."""


_DECIDED = frozenset({"DEFAULT", "AS"})
_KEYS = frozenset({"KEY", "INDEX", "UNIQUE", "FULLTEXT", "SPATIAL"})
"""Words that can precede the name of a key."""


def implicit_timestamps(statement: ParsedStatement) -> tuple[str, ...]:
    """Return the TIMESTAMP columns that an ALTER TABLE defines without NULL or DEFAULT.

    With explicit_defaults_for_timestamp=OFF such a column is NOT NULL and gets a default; with ON
    it is like any other column (MySQL's manual, "Server System Variables"). Values of existing rows
    depend on it.
    """
    found = []
    for _, name, definition in defined_columns(statement):
        words = [token.keyword for token in outside_brackets(definition)]
        nullable = any(
            word == "NULL" and words[place - 1 : place] != ["NOT"]
            for place, word in enumerate(words)
        )
        open_type = words[:1] == ["TIMESTAMP"] and _DECIDED.isdisjoint(words)
        if open_type and not nullable and name.keyword not in _KEYS:
            found.append(name.name)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class DefinedColumn:
    """A column as an ALTER TABLE defines it.

    Attributes:
        existing: the column's name before the statement; empty for a new column.
        type_word: first word of the type, in lower case.
        digits: number after that word, which is the number of fractional digits of a time type.
        given: number of fractional digits in the column's default.
    """

    existing: str
    name: str
    type_word: str
    digits: int
    given: int


def redefined(statement: ParsedStatement) -> tuple[DefinedColumn, ...]:
    """Return the columns that an ALTER TABLE adds or redefines."""
    found = []
    for action, name, definition in defined_columns(statement):
        if definition and name.keyword not in _KEYS:
            word, digits = definition[0].keyword.lower(), _digits_of(definition)
            given = _digits_given(definition)
            found.append(DefinedColumn(_existing(action, name), name.name, word, digits, given))
    return tuple(found)


def _digits_of(definition: Sequence[Token]) -> int:
    number = definition[2:3] if [t.text for t in definition[1:2]] == ["("] else ()
    return int(number[0].text) if number and number[0].text.isdecimal() else 0


def defined_times(statement: ParsedStatement) -> tuple[DefinedColumn, ...]:
    """Return the columns of an ALTER TABLE that may lose fractions of seconds.

    Servers truncate or round them (MySQL's manual, "Fractional Seconds in Time Values"; MariaDB's
    page "Microseconds in MariaDB").
    """
    return tuple(column for column in redefined(statement) if column.type_word in FRACTIONAL)


def truncated_times(statement: ParsedStatement) -> list[tuple[Span, str]]:
    """Return the time defaults of an ALTER TABLE that have more digits than their columns.

    Each default is returned with the value that a truncating server stores.
    """
    found = []
    for _, _, definition in defined_columns(statement):
        if not definition or definition[0].keyword.lower() not in FRACTIONAL:
            continue
        digits = _digits_of(definition)
        for word, value in pairwise(definition):
            if word.keyword == "DEFAULT" and value.kind is TokenKind.STRING:
                whole, _, fraction = value.text[1:-1].partition(".")
                if len(fraction.rstrip("0")) > digits:
                    kept = f"{whole}.{fraction[:digits]}" if digits else whole
                    quote = value.text[0]
                    found.append((Span(value.start, value.end), f"{quote}{kept}{quote}"))
    return found


def _existing(action: Sequence[Token], name: Token) -> str:
    if action[0].keyword == "ADD":
        return ""
    if action[0].keyword == "MODIFY":
        return name.name
    place = next(n for n, token in enumerate(action) if token is name)
    return action[place - 1].name


def _digits_given(definition: Sequence[Token]) -> int:
    for word, value in pairwise(definition):
        if word.keyword == "DEFAULT" and value.kind is TokenKind.STRING:
            return len(value.text[1:-1].partition(".")[2].rstrip("0"))
    return 0


_MOMENTS = frozenset(
    {"NOW", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP", "CURRENT_DATE", "CURRENT_TIME"}
    | {"CURDATE", "CURTIME", "SYSDATE", "UTC_TIMESTAMP", "UTC_DATE", "UTC_TIME"}
    | {"UNIX_TIMESTAMP"}
)
_TIMES = frozenset(found.name for found in SQL_TYPES.values() if found.literal is Literal.QUOTED)


def converts_times(sql: str) -> bool:
    """Return whether a statement may convert times of rows depending on the session's time zone.

    A TIMESTAMP is stored in UTC, so a conversion to or from this type changes the value.
    """
    words = {token.keyword.lower() for token in tokenise(sql)}
    return not words.isdisjoint(("modify", "change")) and not words.isdisjoint(_TIMES)


def shard_only_columns(statement: ParsedStatement, *, explicit: bool | None) -> tuple[str, ...]:
    """Return the columns in which existing rows get values that only the shard knows.

    These are of two kinds: an added column whose default depends on the time or the session, or
    differs at each execution; and a TIMESTAMP that becomes NOT NULL, since servers may store the
    current time for NULL.

    Args:
        explicit: the shard's explicit_defaults_for_timestamp; None if unknown.
    """
    implicit = () if explicit else implicit_timestamps(statement)
    found = []
    for action, name, definition in defined_columns(statement):
        if name.keyword in _KEYS:
            continue
        if _existing(action, name):
            words = [token.keyword for token in outside_brackets(definition)]
            pairs = tuple(pairwise(words))
            own = words[:1] == ["TIMESTAMP"] and ("NOT", "NULL") in pairs
        else:
            own = any(map(_differs, _defaults(definition)))
        if own or name.name in implicit:
            found.append(name.name)
    return tuple(dict.fromkeys(found))


def replaced_default(definition: Sequence[Token]) -> tuple[Sequence[Token], str] | None:
    """Return a column's definition without its default, and the default in brackets.

    MySQL and TiDB refuse defaults that differ at each execution in ADD COLUMN, but accept them in
    SET DEFAULT. Returns None if the definition has no such default.
    """
    for default in _defaults(definition):
        if _differs(default):
            place = next(n for n, token in enumerate(definition) if token is default[0])
            text = " ".join(token.text for token in default)
            left = (*definition[: place - 1], *definition[place + len(default) :])
            return left, text if default[0].text == "(" else f"({text})"
    return None


def _differs(default: Sequence[Token]) -> bool:
    return any(
        token.keyword in _MOMENTS | _WORDS
        or (token.keyword in _FUNCTIONS and following is not None and following.text == "(")
        for token, following in zip_longest(default, default[1:])
    )


def _defaults(definition: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """Yield the words after each DEFAULT: one word, or the content of parentheses."""
    for first in (n + 1 for n, token in enumerate(definition) if token.keyword == "DEFAULT"):
        depth = 0
        for last in range(first, len(definition)):
            depth += (definition[last].text == "(") - (definition[last].text == ")")
            called = last == first and [t.text for t in definition[last + 1 : last + 2]] == ["("]
            if depth <= 0 and not called:
                yield definition[first : last + 1]
                break
