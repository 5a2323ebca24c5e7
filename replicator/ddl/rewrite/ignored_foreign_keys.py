"""Foreign keys that a shard's storage engine ignores.

If a statement has a foreign key, MyISAM, Aria, MEMORY and similar engines only create an index
(MySQL's manual, "FOREIGN KEY Constraints"; MariaDB's page "Foreign Keys"). The engine of the target
would enforce the key: it would refuse and delete rows that the shard keeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from replicator.ddl.model.table import ForeignKeyDefinition, KeyDefinition, KeyKind
from replicator.ddl.parser.alter_actions import alter_actions, split_at_commas
from replicator.ddl.parser.definitions import item_of
from replicator.ddl.parser.statement import ParsedStatement, Span, StatementKind, TableRole
from replicator.ddl.parser.tokens import Token
from replicator.ddl.rewrite.retarget import splice
from replicator.ddl.rewrite.storage import REPLACED, engine_name, engines
from replicator.mysql.names import folded, quote

_TREES = (KeyKind.PRIMARY, KeyKind.UNIQUE, KeyKind.PLAIN)

_ADDED = frozenset({"CONSTRAINT", "FOREIGN", "INDEX", "KEY", "PRIMARY", "UNIQUE"})

Columns = tuple[str, ...]


def named_engine(statement: ParsedStatement) -> str:
    """Return the storage engine that a statement gives its table, in capitals; empty if none."""
    return next((engine_name(token) for token in engines(statement)), "")


def without_ignored_keys(statement: ParsedStatement) -> str:
    """Return a CREATE TABLE without foreign keys, if it names an engine that ignores them."""
    if named_engine(statement) not in REPLACED or not _creates_child(statement):
        return statement.sql
    items = _items(statement)
    found = [item_of(statement.sql, item) for item in items]
    return _without(statement, items, found, [*_column_keys(items)], "")


def without_foreign_keys(statement: ParsedStatement) -> str:
    """Return a CREATE TABLE without its foreign keys; no index replaces them."""
    if not _creates_child(statement):
        return statement.sql
    items = _items(statement)
    found = [item_of(statement.sql, item) for item in items]
    keys = [tuple(map(folded, k.columns)) for k in found if isinstance(k, ForeignKeyDefinition)]
    return _without(statement, items, found, keys, "")


def _creates_child(statement: ParsedStatement) -> bool:
    creates = statement.kind is StatementKind.CREATE_TABLE
    return creates and bool(statement.named(TableRole.REFERENCED))


def altering_without_keys(statement: ParsedStatement, there: Iterable[KeyDefinition]) -> str:
    """Return an ALTER TABLE without the foreign keys that it adds; empty if no action is left.

    Args:
        there: the existing keys of the table.
    """
    if statement.kind is not StatementKind.ALTER_TABLE:
        return statement.sql
    actions = alter_actions(statement)
    found = [_added(statement, action) for action in actions]
    return _without(statement, actions, found, _trees(there), "ADD ")


def _added(statement: ParsedStatement, action: Sequence[Token]) -> object:
    if action[0].keyword != "ADD" or len(action) < 2 or action[1].keyword not in _ADDED:
        return None
    return item_of(statement.sql, action[1:])


def _without(
    statement: ParsedStatement,
    pieces: Sequence[Sequence[Token]],
    found: Sequence[object],
    keys: Sequence[Columns],
    word: str,
) -> str:
    """Replace each foreign key by an index, unless another key begins with its columns."""
    made = [*keys, *_trees(key for key in found if isinstance(key, KeyDefinition))]
    edits: list[tuple[Span, str]] = []
    left = False
    for place, (piece, key) in enumerate(zip(pieces, found, strict=True)):
        own = Span(piece[0].start, piece[-1].end)
        if not isinstance(key, ForeignKeyDefinition):
            left = True
            continue
        columns = tuple(map(folded, key.columns))
        if not any(other[: len(columns)] == columns for other in made):
            made.append(columns)
            name = f"{quote(key.name or key.index)} " if key.name or key.index else ""
            edits.append((own, f"{word}KEY {name}({', '.join(map(quote, key.columns))})"))
            left = True
        elif left:
            edits.append((Span(pieces[place - 1][-1].end, own.end), ""))
        elif place + 1 < len(pieces):
            edits.append((Span(own.start, pieces[place + 1][0].start), ""))
        else:
            return ""
    return splice(statement.sql, edits)


def _items(statement: ParsedStatement) -> list[Sequence[Token]]:
    """Return the definitions in the brackets of a CREATE TABLE."""
    subject = statement.named(TableRole.SUBJECT)[0]
    tokens = [token for token in statement.tokens if token.start >= subject.span.end]
    depth = 0
    for place, token in enumerate(tokens):
        depth += (token.text == "(") - (token.text == ")")
        if not depth:
            return [*split_at_commas(tokens[1:place])]
    return []


def _column_keys(items: Iterable[Sequence[Token]]) -> Iterator[Columns]:
    for item in items:
        if item[0].is_name and {token.keyword for token in item[1:]} & {"PRIMARY", "UNIQUE", "KEY"}:
            yield (folded(item[0].name),)


def _trees(keys: Iterable[KeyDefinition]) -> list[Columns]:
    """Return the columns of the keys by whose first columns rows can be found."""
    return [tuple(folded(part.column) for part in k.parts) for k in keys if k.kind in _TREES]
