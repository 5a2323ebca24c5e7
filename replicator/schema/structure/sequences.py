"""What distinguishes the sequences of a source (MariaDB) from its tables.

Source: MariaDB KB, "Sequence Overview" and "SEQUENCE Tables".
"""

from __future__ import annotations

from replicator.ddl.parser.statement import ParsedStatement, StatementKind

_INTEGERS = frozenset({1, 2, 3, 8, 9})
_TURNS = (["SEQUENCE", "0"], ["SEQUENCE", "1"])
_BIGINT, _TINYINT = 8, 1


def has_columns_of_sequence(types: bytes) -> bool:
    """Whether these column types, by their codes in a table map, are those of a sequence.

    Five of the values' type (BIGINT, or any integer from MariaDB 11.5 on), the size of the cache,
    whether it cycles, the count of cycles.
    """
    values, others = types[:5], types[5:]
    return others == bytes((_BIGINT, _TINYINT, _BIGINT)) and _INTEGERS.issuperset(values)


def turns_sequence(statement: ParsedStatement) -> bool:
    """Whether an ALTER TABLE makes a table a sequence (SEQUENCE = 1), or the other way round."""
    texts = [token.text.upper() for token in statement.tokens]
    return statement.kind is StatementKind.ALTER_TABLE and any(
        texts[at : at + 2] == ["SEQUENCE", "="] or texts[at : at + 2] in _TURNS
        for at in range(len(texts))
    )
