"""The rows that a statement removes with partitions, as a text for comparing two tables.

A partition's name alone does not determine its rows: ``p0`` may end at different values in two
tables, and a table without partitions has none to drop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from replicator.ddl.parser.alter_actions import alter_actions
from replicator.ddl.parser.statement import ParsedStatement, StatementKind
from replicator.ddl.parser.tokens import Token, tokenise
from replicator.mysql.names import folded, quote
from replicator.schema.structure.structure import Table

Partitions = tuple[tuple[str, ...], ...]
"""How a table is partitioned, followed by its partitions, each as words; () without partitions."""

NO_ROWS = ""
"""The text for a statement that removes only the history of rows, which is never merged."""

_OPTIONS = frozenset(
    {"comment", "data", "index", "max_rows", "min_rows", "tablespace", "nodegroup", "subpartition"}
)
_NOISE = frozenset({"IF", "EXISTS"})


@lru_cache(maxsize=1024)
def all_partitions(table: Table) -> Partitions:
    """Return the partitions of a table, in the same words for all servers."""
    found = table.definition.partitioning
    if found is None:
        return ()
    listed = (f"{quote(part.name)} {part.text}" for part in found.partitions)
    texts = (f"PARTITION {text}" for text in (f"BY {found.by}", *listed))
    return tuple(_words(tokenise(text)) for text in texts)


def _words(tokens: Sequence[Token]) -> tuple[str, ...]:
    """Return a definition, without its storage engine."""
    words: list[str] = []
    depth = 0
    for token in tokens:
        depth += (token.text == "(") - (token.text == ")")
        if depth < 0 or token.keyword == "ENGINE":
            break
        words.append(token.name.lower())
    return tuple(words)


def keeps_history(table: Table) -> bool:
    """Return whether the partitions of a table only separate the history of its rows (MariaDB)."""
    return "system_time" in (*all_partitions(table)[:1], ())[0]


def removed_rows(statement: ParsedStatement, table: Table | None) -> str | None:
    """Return which rows a statement removes by dropping or emptying partitions.

    Returns None if it does neither or the table is unknown.
    """
    if statement.kind is not StatementKind.ALTER_TABLE or not statement.discards_rows:
        return None
    actions = [action for action in alter_actions(statement) if _removes(action)]
    if not actions or table is None:
        return None
    texts = [text for action in actions for text in _removed(action, table)]
    return "; ".join(filter(None, texts))


def _removes(action: Sequence[Token]) -> bool:
    words = [token.keyword for token in action[:2]]
    return words in (["DROP", "PARTITION"], ["TRUNCATE", "PARTITION"])


def _removed(action: Sequence[Token], table: Table) -> Iterator[str]:
    found = all_partitions(table)
    if not found:
        yield "rows of a table without partitions"
        return
    if keeps_history(table) and action[0].keyword == "DROP":
        yield NO_ROWS
        return
    method, *listed = found
    by_name = {words[1]: place for place, words in enumerate(listed) if len(words) > 1}
    names = [folded(t.name) for t in action[2:] if t.is_name and t.keyword not in _NOISE]
    for name in names:
        place = by_name.get(name)
        if name == "all":
            yield "all rows"
        elif place is None or "values" not in listed[place]:
            yield NO_ROWS if _is_history(found, name) else f"{name} of {' '.join(sum(found, ()))}"
        else:
            before = _values(listed[place - 1]) if place and "range" in method else ""
            begin = f" from {before}" if before else ""
            yield f"{' '.join(method)}: {_values(listed[place])}{begin}"


def _is_history(found: Partitions, name: str) -> bool:
    return any(words[1:3] == (name, "history") for words in found[1:])


def _values(words: Sequence[str]) -> str:
    values = [word for word in words[words.index("values") + 1 :] if word not in "()"]
    end = next((n for n, word in enumerate(values) if word in _OPTIONS), len(values))
    return " ".join(values[:end])
