"""Columns that a server hides, though its row events have them; and the time of a versioned row.

MariaDB adds columns that neither information_schema nor SHOW CREATE TABLE tells: ``row_start`` and
``row_end`` where a table WITH SYSTEM VERSIONING names no period of its own, and a hash for each
unique key that is too long for an index (``TABLE_SHARE::init_from_binary_frm_image`` and
``add_hash_field`` in its table.cc and sql_table.cc; its page "System-Versioned Tables"). Behind the
other columns stand first the times, then the hashes, also after columns or keys were added. MySQL
keeps what it hides for a functional key out of its events.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from replicator.ddl.parser.tokens import Token, tokenise
from replicator.mysql.names import folded
from replicator.schema.structure.structure import Column, Table

_HASHING = frozenset({"MEMORY", "HEAP"})
"""Engines that have indexes which are hashes: they need no column for them."""

_VERSIONED, _HASH = "VERSIONING", "HASH"
"""Without these words there is nothing hidden: most texts need not be taken apart."""

_TIME = "timestamp(6)"


@dataclass(frozen=True, slots=True)
class Period:
    """The columns with the times from which and until which a row was the present one."""

    start: str
    end: str


def system_period(create_sql: str) -> Period | None:
    """The period of a table that keeps its former rows (WITH SYSTEM VERSIONING), else None.

    From the text of SHOW CREATE TABLE.
    """
    if _VERSIONED not in create_sql.upper():
        return None
    items, options = _parts(create_sql)
    if not _has(options, "WITH", "SYSTEM", "VERSIONING"):
        return None
    for item in items:
        if _has(item[:3], "PERIOD", "FOR", "SYSTEM_TIME"):
            names = [token.name for token in item[3:] if token.is_name]
            return Period(*names[:2])
    return Period("row_start", "row_end")


def hidden_columns(table: Table) -> tuple[Column, ...]:
    """What a MariaDB's row events have behind the columns of this table.

    Another server's events have none of it, nor do those from before a key or the versioning was
    added: the number of columns in the events tells.
    """
    text = table.create_sql.upper()
    if _VERSIONED not in text and _HASH not in text:
        return ()
    items, options = _parts(table.create_sql)
    found = []
    period = system_period(table.create_sql)
    if period is not None and table.column(period.end) is None:
        found += [
            Column(name, _TIME, nullable=False, generated=True)
            for name in (period.start, period.end)
        ]
    if not _HASHING.intersection(_engine(options)):
        hashes = sum(_has(i[:2], "UNIQUE", "KEY") and _has(i, "USING", "HASH") for i in items)
        found += [
            Column(f"DB_ROW_HASH_{number}", "bigint(20) unsigned", generated=True)
            for number in range(1, hashes + 1)
        ]
    return tuple(found)


def with_hidden(table: Table, columns: int) -> Table:
    """The table with the columns that are hidden, where events of ``columns`` have them."""
    hidden = hidden_columns(table)
    if columns != len(table.columns) + len(hidden):
        return table
    return replace(table, columns=table.columns + hidden)


def without_period(table: Table) -> Table:
    """The table with the keys that tell its present rows apart.

    The server adds the end of the period to each unique key, since former rows have equal keys.
    """
    period = system_period(table.create_sql)
    if period is None:
        return table
    end = folded(period.end)
    keys = (
        replace(key, columns=tuple(name for name in key.columns if folded(name) != end))
        for key in table.keys
    )
    return replace(table, keys=tuple(key for key in keys if key.columns or key.prefix))


def _parts(create_sql: str) -> tuple[list[list[Token]], list[Token]]:
    """The tokens outside inner parentheses of each column and key; those of the options."""
    items: list[list[Token]] = [[]]
    options: list[Token] = []
    depth = 0
    closed = False
    for token in tokenise(create_sql):
        depth -= token.text == ")"
        closed = closed or (depth == 0 and token.text == ")")
        if closed:
            options.append(token)
        elif depth == 1 and token.text == ",":
            items.append([])
        elif depth == 1 or (depth == 2 and _has(items[-1][:3], "PERIOD", "FOR", "SYSTEM_TIME")):
            items[-1].append(token)
        depth += token.text == "("
    return items, options


def _has(tokens: list[Token], *words: str) -> bool:
    return any(
        tuple(token.keyword for token in tokens[at : at + len(words)]) == words
        for at in range(len(tokens) - len(words) + 1)
    )


def _engine(options: list[Token]) -> Iterator[str]:
    for word, sign, value in zip(options, options[1:], options[2:], strict=False):
        if word.keyword == "ENGINE" and sign.text == "=":
            yield value.keyword
