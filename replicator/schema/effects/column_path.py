"""The columns of a target that the columns of a shard have become after schema changes of others.

Pure. A shard that was created with an older structure than its target makes the target's schema
changes later. Until then its rows are written by the path of its columns, not by their names: a
name may belong to another column by now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from replicator.ddl.parser.alter_actions import alter_actions
from replicator.ddl.parser.statement import ParsedStatement, StatementKind
from replicator.ddl.parser.tokens import Token
from replicator.mysql.names import folded

ColumnPath = tuple[tuple[str, str], ...]
"""Pairs of a shard's column and the target's, both folded. The target's name is empty if the column
was dropped. Columns that kept their names are left out."""

_OPTIONAL = frozenset({"COLUMN", "IF", "EXISTS"})
_NO_COLUMN = frozenset(
    {
        *("INDEX", "KEY", "UNIQUE", "FULLTEXT", "SPATIAL", "PRIMARY", "FOREIGN", "CONSTRAINT"),
        *("CHECK", "PARTITION", "PERIOD", "SYSTEM"),
    }
)


def column_path(columns: Iterable[str], statements: Iterable[ParsedStatement]) -> ColumnPath:
    """Return the path of these columns through statements, in their order.

    The statements other than ALTER TABLE leave the columns as they are.
    """
    names = {folded(column): folded(column) for column in columns}
    for statement in statements:
        if statement.kind is StatementKind.ALTER_TABLE:
            changed = _changed_names(statement)
            names = {name: changed.get(now, now) for name, now in names.items()}
    return tuple((name, now) for name, now in names.items() if name != now)


def _changed_names(statement: ParsedStatement) -> Mapping[str, str]:
    """The columns that one statement renames or drops (then with an empty name)."""
    changed: dict[str, str] = {}
    for action in alter_actions(statement):
        word, names = action[0].keyword, _names(action[1:])
        if word == "CHANGE" and len(names) > 1:
            changed[names[0]] = names[1]
        elif word == "RENAME" and action[1].keyword == "COLUMN" and len(names) == 3:
            changed[names[0]] = names[2]
        elif word == "DROP" and names and action[1].keyword not in _NO_COLUMN:
            changed[names[0]] = ""
    return changed


def _names(tokens: Sequence[Token]) -> list[str]:
    """The folded words after an action's first one; ``a``, ``to``, ``b`` of RENAME COLUMN."""
    found = list(tokens)
    while found and found[0].keyword in _OPTIONAL:
        del found[0]
    return [folded(token.name) for token in found if token.is_name]
