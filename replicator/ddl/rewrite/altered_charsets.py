"""The charsets of columns after an ALTER TABLE that changes the table's charset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from replicator.ddl.model.actions import Convert
from replicator.ddl.model.table import ColumnDefinition
from replicator.ddl.rewrite.table_change import TEXT_TYPES

CHARSET_OPTIONS = ("CHARSET", "COLLATE")
"""The table options that decide the charset of columns without a charset of their own."""

_LARGER = {"tinytext": "text", "text": "mediumtext", "mediumtext": "longtext"}
_TEXTS = (*_LARGER, "longtext")
_WIDTHS = {"ascii": 1, "binary": 1, "latin1": 1, "gbk": 2, "utf8": 3, "utf8mb3": 3, "utf8mb4": 4}
"""Maximum number of bytes of a character in the charsets of TiDB."""


class UnknownCharsetError(Exception):
    """The charset of a column, or its type with the charset, is unknown; the text is the reason."""


def with_defaults(options: Mapping[str, str], changed: Mapping[str, str]) -> dict[str, str]:
    """Return a table's options after a change of `CHARSET_OPTIONS`.

    The new collation belongs to the new charset.
    """
    charset = changed.get("CHARSET") or _charset_of(changed.get("COLLATE", ""))
    if charset.upper() in ("", "DEFAULT"):
        raise UnknownCharsetError("the statement does not name the charset")
    return {**options, "CHARSET": charset, "COLLATE": changed.get("COLLATE", "")}


def pinned(column: ColumnDefinition, options: Mapping[str, str]) -> ColumnDefinition:
    """Return a column with its present charset written out, since its table gets another charset.

    ``options``: the present options of the table.
    """
    if not _is_text(column) or column.charset or column.collation:
        return column
    charset, collation = (options.get(name, "") for name in CHARSET_OPTIONS)
    if not charset and not collation:
        raise UnknownCharsetError(f"column {column.name} and its table name no charset")
    return replace(column, charset=charset, collation=collation)


def converted(
    column: ColumnDefinition, options: Mapping[str, str], action: Convert, *, defined: bool
) -> ColumnDefinition:
    """Return a column after CONVERT TO CHARACTER SET.

    A TEXT gets the next larger type if its characters may need more bytes (MySQL's manual, "ALTER
    TABLE Statement").

    Args:
        options: the options of the table before the statement.
        defined: whether the same statement adds or redefines the column.
    """
    if not _is_text(column):
        return column
    word = _word(column)
    if defined and (column.charset or column.collation or word in _TEXTS):
        raise UnknownCharsetError(f"the statement defines column {column.name}, and converts it")
    kind = column.type
    if word in _LARGER:
        own = column.charset or _charset_of(column.collation)
        before = own or options.get("CHARSET") or _charset_of(options.get("COLLATE", ""))
        widths = [_WIDTHS.get(charset.lower(), 0) for charset in (before, action.charset)]
        if not all(widths):
            raise UnknownCharsetError(f"how long characters of {column.name} are is not known")
        kind = _LARGER[word] if widths[0] < widths[1] else kind
    return replace(column, type=kind, charset=action.charset, collation=action.collation)


def _is_text(column: ColumnDefinition) -> bool:
    return _word(column) in TEXT_TYPES


def _word(column: ColumnDefinition) -> str:
    return column.type.lower().partition("(")[0].split()[0]


def _charset_of(collation: str) -> str:
    return collation.partition("_")[0]
