"""Columns whose defaults may be other values on the target than in the shards.

The rows that are there get the default, and the server logs none of them: those of the target get
others than their shards have. The functions: "Information Functions", "Miscellaneous Functions" and
"Mathematical Functions" of MySQL's manual; MariaDB's pages of the same names, UUID_v4 and "Sequence
Functions".
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
    # What belongs to the session or the server that adds the column.
    | {"CONNECTION_ID", "LAST_INSERT_ID", "USER", "SESSION_USER", "SYSTEM_USER", "VERSION"}
    | {"DATABASE", "SCHEMA", "NEXTVAL", "LASTVAL"}
)
_WORDS = frozenset({"CURRENT_USER", "CURRENT_ROLE", "NEXT", "PREVIOUS"})
"""What needs no parentheses."""


_DECIDED = frozenset({"DEFAULT", "AS"})
_KEYS = frozenset({"KEY", "INDEX", "UNIQUE", "FULLTEXT", "SPATIAL"})
"""What may stand before the name of a key."""


def implicit_timestamps(statement: ParsedStatement) -> tuple[str, ...]:
    """The TIMESTAMP columns an ALTER TABLE adds or defines anew that leave to a mode what they are.

    With explicit_defaults_for_timestamp=OFF a TIMESTAMP that says neither NULL nor DEFAULT is NOT
    NULL and gets a default, with ON it is as any other column (MySQL's manual, "Server System
    Variables"). Rows that are there get the one or the other value.
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

    ``existing``: its name before; empty where it is new. ``type_word``: its type's first word, in
    lower case. ``digits``: the number behind that, which are the digits of a fraction of seconds.
    ``given``: those that its default is written with.
    """

    existing: str
    name: str
    type_word: str
    digits: int
    given: int


def redefined(statement: ParsedStatement) -> tuple[DefinedColumn, ...]:
    """The columns that an ALTER TABLE adds or defines anew."""
    found = []
    for action, name, definition in defined_columns(statement):
        if definition and name.keyword not in _KEYS:
            word, digits = definition[0].keyword.lower(), _digits_of(definition)
            given = _digits_given(definition)
            found.append(DefinedColumn(_existing(action, name), name.name, word, digits, given))
    return tuple(found)


def _digits_of(definition: Sequence[Token]) -> int:
    """The number behind the first word of a type, 0 where there is none."""
    number = definition[2:3] if [t.text for t in definition[1:2]] == ["("] else ()
    return int(number[0].text) if number and number[0].text.isdecimal() else 0


def defined_times(statement: ParsedStatement) -> tuple[DefinedColumn, ...]:
    """The columns of an ALTER TABLE that may lose fractions of seconds.

    A server truncates or rounds them ("Fractional Seconds in Time Values" of MySQL's manual,
    "Microseconds in MariaDB").
    """
    return tuple(column for column in redefined(statement) if column.type_word in FRACTIONAL)


def truncated_times(statement: ParsedStatement) -> list[tuple[Span, str]]:
    """The defaults of times in an ALTER TABLE that have more digits than their columns keep, each
    with what a server stores that truncates them."""
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
    """What a column that an action defines was called before; empty where it adds it."""
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
    """Whether a statement may convert times of rows, which the session's time zone decides on.

    A TIMESTAMP is kept in UTC: what becomes one, or is made from one, is converted.
    """
    words = {token.keyword.lower() for token in tokenise(sql)}
    return not words.isdisjoint(("modify", "change")) and not words.isdisjoint(_TIMES)


def shard_only_columns(statement: ParsedStatement, *, explicit: bool | None) -> tuple[str, ...]:
    """Return the columns in which existing rows get values that only the shard knows.

    These are an added column whose default depends on the moment or the session, or is another
    value at each execution, and a TIMESTAMP that becomes NOT NULL, since servers may store the
    moment for NULL.

    Args:
        statement: the statement of the shard.
        explicit: its explicit_defaults_for_timestamp; None if that is not known.
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
    """Return a definition without a default that MySQL and TiDB refuse in ADD COLUMN, and this
    default in brackets; None if it has no such default.

    They refuse values that differ at each execution, but take them in SET DEFAULT.
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
    """The words after each DEFAULT: one, or those in the parentheses that follow."""
    for first in (n + 1 for n, token in enumerate(definition) if token.keyword == "DEFAULT"):
        depth = 0
        for last in range(first, len(definition)):
            depth += (definition[last].text == "(") - (definition[last].text == ")")
            called = last == first and [t.text for t in definition[last + 1 : last + 2]] == ["("]
            if depth <= 0 and not called:
                yield definition[first : last + 1]
                break
