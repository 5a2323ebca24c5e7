"""What influences a formula's result besides the values of its columns.

A stored column keeps the result from the session that wrote the row: a TIMESTAMP as a text, or its
hour, depends on the session's time zone. Columns with equal values may also give different results:
a text has other bytes in another charset and is equal to other texts in another collation, and a
time with more digits of its seconds is a different text or number.
"""

from __future__ import annotations

from collections.abc import Sequence

from replicator.ddl.parser.tokens import Token, TokenKind, tokenise
from replicator.mysql.names import folded, quote
from replicator.schema.effects.column_values import formula
from replicator.schema.structure.structure import Column, Table

_STORED = frozenset({"STORED", "PERSISTENT"})
_LOCAL_NAMES = frozenset({"DAYNAME", "MONTHNAME"})
_NAMES_IN_FORMATS = ("%a", "%b", "%M", "%W")
_OF_BYTES = frozenset(
    {
        *("LENGTH", "OCTET_LENGTH", "BIT_LENGTH", "HEX", "ASCII", "ORD", "BINARY", "MD5", "SHA"),
        *("SHA1", "SHA2", "CRC32", "CRC32C", "TO_BASE64", "COMPRESS", "WEIGHT_STRING"),
        *("AES_ENCRYPT", "PASSWORD", "OLD_PASSWORD", "RANDOM_BYTES"),
    }
)
_OF_ORDER = frozenset(
    {
        *("=", "<>", "!=", "<", ">", "<=", ">=", "<=>", "LIKE", "IN", "BETWEEN", "REGEXP", "RLIKE"),
        *("REGEXP_LIKE", "REGEXP_INSTR", "REGEXP_REPLACE", "REGEXP_SUBSTR", "STRCMP", "NULLIF"),
        *("LOCATE", "INSTR", "POSITION", "FIELD", "FIND_IN_SET", "GREATEST", "LEAST", "CASE"),
        *("WEIGHT_STRING", "SOUNDEX"),
    }
)
_WITHOUT_FRACTION = frozenset(
    {
        *("YEAR", "MONTH", "DAY", "DAYOFMONTH", "DAYOFWEEK", "DAYOFYEAR", "WEEKDAY", "QUARTER"),
        *("HOUR", "MINUTE", "SECOND", "DATE", "TO_DAYS", "LAST_DAY", "WEEK", "WEEKOFYEAR"),
        *("YEARWEEK", "DATEDIFF", "DATE_FORMAT", "DAYNAME", "MONTHNAME"),
    }
)


def session_dependence(table: Table, column: str) -> str | None:
    """Return the session setting that a stored column's value depends on, or None."""
    found = table.defined(column)
    if found is None or found.generated is None or found.generated.storage not in _STORED:
        return None
    words = tokenise(found.generated.text)
    for place, word in enumerate(words):
        behind = [following.text for following in words[place + 1 : place + 4]]
        if _is_local_time(table, words, place):
            return f"the time zone of the session that writes ({quote(word.name)} is a TIMESTAMP)"
        if word.keyword == "FROM_UNIXTIME" or (
            word.keyword == "UNIX_TIMESTAMP" and not _is_timestamp(table, words[place + 2])
        ):
            return f"the time zone of the session that writes ({word.keyword})"
        if word.keyword in _LOCAL_NAMES or (word.keyword == "DATE_FORMAT" and _shows_names(words)):
            return f"lc_time_names of the session that writes ({word.keyword})"
        if word.keyword == "WEEK" and behind[:1] == ["("] and behind[2:] == [")"]:
            return "default_week_format of the session that writes (WEEK without a mode)"
    return None


def _is_local_time(table: Table, words: Sequence[Token], place: int) -> bool:
    """Return whether this word is a TIMESTAMP that is used as a local time."""
    if not _is_timestamp(table, words[place]):
        return False
    before = [word.text.upper() for word in words[max(0, place - 2) : place]]
    behind = [word.text.upper() for word in words[place + 1 : place + 2]]
    return before != ["UNIX_TIMESTAMP", "("] and behind != ["IS"]


def _is_timestamp(table: Table, word: Token) -> bool:
    column = table.column(word.name) if word.kind is TokenKind.QUOTED else None
    return column is not None and column.base_type == "timestamp"


def _shows_names(words: Sequence[Token]) -> bool:
    formats = [word.text for word in words if word.kind is TokenKind.STRING]
    return not formats or any(name in text for text in formats for name in _NAMES_IN_FORMATS)


def tells_apart(table: Table, column: str, own: Column, its: Column) -> bool:
    """Return whether a formula may give different results for equal values of two inputs.

    Both inputs are of the same family of types. ``own``: the shard's column; ``its``: the target's.
    """
    words = tokenise(formula(table, column))
    names = {word.keyword or word.text for word in words}
    if own.charset and its.charset:
        bytes_differ = not _same_bytes(own.charset, its.charset)
        order_differs = _order(own.collation) != _order(its.collation)
        return (bytes_differ and bool(names & _OF_BYTES)) or (
            order_differs and bool(names & _OF_ORDER)
        )
    if own.type.lower() == its.type.lower():
        return False
    if own.base_type in ("datetime", "timestamp", "time"):
        return any(
            folded(word.name) == folded(own.name) and not _drops_fraction(words, place)
            for place, word in enumerate(words)
            if word.kind is TokenKind.QUOTED
        )
    return "zerofill" in f"{own.type} {its.type}".lower()


def _drops_fraction(words: Sequence[Token], place: int) -> bool:
    if place < 2 or words[place - 1].text != "(":
        return False
    behind = [word.keyword for word in words[place + 1 : place + 3]]
    name = words[place - 2].keyword
    return name in _WITHOUT_FRACTION or (name == "CAST" and behind == ["AS", "DATE"])


def _same_bytes(one: str, other: str) -> bool:
    unicode = {"ascii", "utf8", "utf8mb3", "utf8mb4"}
    return one == other or {one, other} <= unicode or "ascii" in (one, other)


def _order(collation: str) -> str:
    """Return a collation without its UTF-8 charset, because UTF-8 charsets have the same orders."""
    charset, _, name = collation.lower().partition("_")
    return name if charset in ("utf8", "utf8mb3", "utf8mb4") else collation.lower()
