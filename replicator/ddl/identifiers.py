"""Quoting of names in SQL text."""

from __future__ import annotations


def quote_identifier(name: str) -> str:
    """Return ``name`` in backticks, with backticks in it doubled: safe to place in a statement.

    Backticks are understood under every ``sql_mode``. Raises `ValueError` for a name that no
    server accepts: empty, or with a NUL character.
    """
    if not name or "\x00" in name:
        raise ValueError(
            f"{name!r} cannot be the name of a database, table or column: a name has at least one "
            "character and no NUL. Check where the name comes from."
        )
    return "`" + name.replace("`", "``") + "`"


def quote_table(schema: str, table: str) -> str:
    """Return the fully qualified, quoted name of a table. Raises `ValueError` as above."""
    return f"{quote_identifier(schema)}.{quote_identifier(table)}"
