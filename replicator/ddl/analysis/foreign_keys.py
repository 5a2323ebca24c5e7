"""The foreign keys that a CREATE TABLE declares. Pure.

Sources: the MySQL manual ("FOREIGN KEY Constraints") and MariaDB's page "Foreign Keys".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from replicator.ddl.parser.statement import ParsedStatement, TableReference, TableRole
from replicator.ddl.parser.tokens import Token
from replicator.mysql.names import TableName, folded, quote

RESTRICT = "RESTRICT"
_ACTIONS = {
    ("RESTRICT",): RESTRICT,
    ("NO", "ACTION"): RESTRICT,
    ("CASCADE",): "CASCADE",
    ("SET", "NULL"): "SET NULL",
    ("SET", "DEFAULT"): "SET DEFAULT",
}


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A foreign key without its name.

    Attributes:
        columns: columns of the child.
        on_delete, on_update: action when a row of the parent is deleted or updated; RESTRICT for
            none.
    """

    columns: tuple[str, ...]
    parent: TableName
    parent_columns: tuple[str, ...]
    on_delete: str
    on_update: str

    @property
    def acts(self) -> bool:
        """Whether the foreign key changes rows of the child."""
        return (self.on_delete, self.on_update) != (RESTRICT, RESTRICT)

    def __str__(self) -> str:
        return (
            f"FOREIGN KEY ({_names(self.columns)}) REFERENCES {self.parent.quoted}"
            f" ({_names(self.parent_columns)}) ON DELETE {self.on_delete}"
            f" ON UPDATE {self.on_update}"
        )


def declared_keys(statement: ParsedStatement) -> tuple[ForeignKey, ...] | None:
    """Return the foreign keys of the table that a CREATE TABLE makes, with folded column names.

    Returns None if they are unclear, for example with REFERENCES in a column's definition, which
    only some server versions apply.
    """
    tokens = statement.tokens
    places = {token.start: place for place, token in enumerate(tokens)}
    found = []
    for parent in statement.named(TableRole.REFERENCED):
        key = _key(tokens, places[parent.span.start], parent)
        if key is None:
            return None
        found.append(key)
    return tuple(found)


def _key(tokens: tuple[Token, ...], at: int, parent: TableReference) -> ForeignKey | None:
    """Return the key FOREIGN KEY [name] (…) REFERENCES parent (…) whose parent begins at ``at``."""
    if at < 2 or tokens[at - 1].keyword != "REFERENCES" or tokens[at - 2].text != ")":
        return None
    opening = next((n for n in range(at - 2, -1, -1) if tokens[n].text == "("), 0)
    head = [token.keyword for token in tokens[max(opening - 3, 0) : opening]]
    if head[-2:] != ["FOREIGN", "KEY"] and head[:2] != ["FOREIGN", "KEY"]:
        return None
    end = next((n for n in range(at, len(tokens)) if tokens[n].start >= parent.span.end), at)
    closing = next((n for n in range(end, len(tokens)) if tokens[n].text == ")"), end)
    columns = _columns(tokens[opening + 1 : at - 2])
    parent_columns = _columns(tokens[end + 1 : closing])
    if tokens[end].text != "(" or not columns or len(columns) != len(parent_columns or ()):
        return None
    actions = {"DELETE": RESTRICT, "UPDATE": RESTRICT}
    place = closing + 1
    while place + 2 < len(tokens) and tokens[place].keyword == "ON":
        words = tuple(token.keyword for token in tokens[place + 2 : place + 4])
        action = next((w for w in (words[:1], words) if w in _ACTIONS), None)
        if tokens[place + 1].keyword not in actions or action is None:
            return None
        actions[tokens[place + 1].keyword] = _ACTIONS[action]
        place += 2 + len(action)
    if place < len(tokens) and tokens[place].text not in (",", ")"):
        return None
    name = TableName(parent.schema, parent.table)
    return ForeignKey(columns, name, parent_columns or (), actions["DELETE"], actions["UPDATE"])


def _columns(tokens: Iterable[Token]) -> tuple[str, ...] | None:
    words = tuple(tokens)
    names, commas = words[::2], words[1::2]
    if not all(name.is_name for name in names) or any(comma.text != "," for comma in commas):
        return None
    return tuple(folded(name.name) for name in names)


def _names(columns: Iterable[str]) -> str:
    return ", ".join(map(quote, columns))
