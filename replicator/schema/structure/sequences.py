"""Recognizing the sequences of a source (MariaDB).

Source: MariaDB KB, "Sequence Overview" and "SEQUENCE Tables".
"""

from __future__ import annotations

from replicator.ddl.parser.statement import ParsedStatement, StatementKind

_INTEGERS = frozenset({1, 2, 3, 8, 9})
_TURNS = (["SEQUENCE", "0"], ["SEQUENCE", "1"])
_BIGINT, _TINYINT = 8, 1


def has_columns_of_sequence(types: bytes) -> bool:
    """Return whether these column types, by their codes in a table map, are a sequence's.

    A sequence has five columns of the values' type (BIGINT, or any integer since MariaDB 11.5), the
    size of the cache, whether it cycles, and the number of cycles.
    """
    values, others = types[:5], types[5:]
    return others == bytes((_BIGINT, _TINYINT, _BIGINT)) and _INTEGERS.issuperset(values)


def turns_sequence(statement: ParsedStatement) -> bool:
    """Return whether an ALTER TABLE converts a table to a sequence (SEQUENCE = 1) or back."""
    texts = [token.text.upper() for token in statement.tokens]
    return statement.kind is StatementKind.ALTER_TABLE and any(
        texts[at : at + 2] == ["SEQUENCE", "="] or texts[at : at + 2] in _TURNS
        for at in range(len(texts))
    )
