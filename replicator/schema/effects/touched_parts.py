"""The parts of a table, columns and indexes, that a statement touches.

Both text and structures are needed. Structures may be equal after ``DROP c, ADD c INT`` or after
two columns exchange their names. The text does not show the result of CONVERT TO CHARACTER SET.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from replicator.ddl.parser.alter_actions import alter_actions, split_at_commas
from replicator.ddl.parser.statement import ParsedStatement, StatementKind
from replicator.ddl.parser.tokens import Token
from replicator.mysql.names import folded
from replicator.schema.effects.carried_change import MemberChange
from replicator.schema.structure.structure import Column, Table

_NOISE = frozenset({"COLUMN", "IF", "NOT", "EXISTS"})
"""Words that may precede a name."""
_INDEX = frozenset({"INDEX", "KEY"})
_KINDS_OF_INDEX = frozenset({"UNIQUE", "FULLTEXT", "SPATIAL"}) | _INDEX
_NO_COLUMN = _KINDS_OF_INDEX | {
    *("PRIMARY", "CONSTRAINT", "FOREIGN", "CHECK", "PARTITION", "PERIOD", "SYSTEM")
}
_SAME_TYPE = {"json": "longtext", "year(4)": "year"}
"""Names of one type on different servers."""


@dataclass(slots=True)
class Touched:
    """The parts that a statement touches, as `column_part` and `index_part` name them.

    Attributes:
        dropped: columns whose values are lost.
        renamed: columns that lose their name.
        named: the new names of renamed columns.
        pairs: folded names of renamed columns before and after.
        converted: columns that are changed in place.
        added: new columns, including new names.
        other: indexes and defaults.
    """

    dropped: set[str] = field(default_factory=set)
    renamed: set[str] = field(default_factory=set)
    named: set[str] = field(default_factory=set)
    pairs: set[tuple[str, str]] = field(default_factory=set)
    converted: set[str] = field(default_factory=set)
    added: set[str] = field(default_factory=set)
    other: set[str] = field(default_factory=set)

    @property
    def all(self) -> frozenset[str]:
        """All touched parts."""
        return self.taken | self.added | self.other

    @property
    def taken(self) -> frozenset[str]:
        """The columns that are dropped, renamed or converted."""
        return frozenset(self.dropped | self.renamed | self.converted)


def column_part(name: str) -> str:
    """Return a column as a part; names of columns are compared without case."""
    return f"column {folded(name)}"


def name_of_column(part: str) -> str:
    """Return the folded name of a column from its part."""
    return part.removeprefix("column ")


def index_part(name: str) -> str:
    """Return an index as a part."""
    return f"index {folded(name)}"


def name_of_index(part: str) -> str:
    """Return the folded name of an index from its part."""
    return part.removeprefix("index ")


def columns_of(table: Table | None) -> frozenset[str]:
    """Return the columns of a table as parts; none if the table is None."""
    return frozenset(column_part(column.name) for column in table.columns) if table else frozenset()


def same_type(one: Column, other: Column) -> bool:
    """Return whether two servers' texts mean the same type."""
    return _shown(one.type) == _shown(other.type)


def _shown(column_type: str) -> str:
    # MySQL 8 omits the display width that older servers show: int(11) is int.
    shown = re.sub(r"int\(\d+\)", "int", column_type.lower())
    return _SAME_TYPE.get(shown, shown)


def touched_parts(statement: ParsedStatement, change: MemberChange) -> Touched:
    """Return the parts that an ALTER TABLE, CREATE INDEX or DROP INDEX touches."""
    found = Touched()
    if statement.kind is StatementKind.ALTER_TABLE:
        for action in alter_actions(statement):
            _read(action, found)
    else:
        words = list(statement.tokens)
        place = next(i for i, token in enumerate(words) if token.keyword in _INDEX)
        found.other.update(map(index_part, _name(words[place + 1 :])))
    if change.before is not None and change.after is not None:
        _compare(change.before, change.after, found)
    found.converted -= found.dropped | found.renamed | found.added
    return found


def copied_otherwise(statements: Iterable[ParsedStatement]) -> str | None:
    """Return why values of a ghost table's rows are unknown after these ALTER TABLEs, or None.

    Tools copy rows by the names of columns. gh-ost and pt-online-schema-change support CHANGE, but
    not RENAME COLUMN, which leaves the new column empty. pt-online-schema-change also copies a
    column that is dropped and added again.
    """
    dropped: set[str] = set()
    added: set[str] = set()
    for statement in statements:
        if statement.kind is not StatementKind.ALTER_TABLE:
            continue
        for action in alter_actions(statement):
            found = Touched()
            _read(action, found)
            if found.renamed and action[0].keyword == "RENAME":
                return f"the tool was told to RENAME {', '.join(sorted(found.renamed))}"
            dropped |= found.dropped
            added |= found.added - found.named
    if both := dropped & added:
        return f"the tool was told to drop {', '.join(sorted(both))} and to add it again"
    return None


def _read(action: Sequence[Token], found: Touched) -> None:
    word, rest = action[0].keyword, action[1:]
    second = rest[0].keyword if rest else ""
    if word in ("ADD", "DROP") and second in _NO_COLUMN:
        found.other.update(map(index_part, _index(rest)))
    elif word == "ADD":
        found.added.update(map(column_part, _added(rest)))
    elif word == "DROP":
        found.dropped.update(map(column_part, _name(rest)))
    elif word == "MODIFY":
        found.converted.update(map(column_part, _name(rest)))
    elif word == "CHANGE":
        names = _plain(rest)[:2]
        _renamed([token.name for token in names], found)
    elif word == "RENAME" and second in _INDEX:
        found.other.update(index_part(token.name) for token in _plain(rest[1:]) if _named(token))
    elif word == "RENAME" and second == "COLUMN":
        _renamed([token.name for token in _plain(rest) if _named(token)], found)
    elif word == "ALTER" and second not in _NO_COLUMN:
        found.other.update(f"default of {column_part(name)}" for name in _name(rest))


def _renamed(names: list[str], found: Touched) -> None:
    old, new = map(column_part, names)
    if old == new:
        found.converted.add(old)
    else:
        found.renamed.add(old)
        found.named.add(new)
        found.added.add(new)
        found.pairs.add((name_of_column(old), name_of_column(new)))


def _named(token: Token) -> bool:
    return token.is_name and token.keyword != "TO"


def _plain(tokens: Iterable[Token]) -> list[Token]:
    return [token for token in tokens if token.keyword not in _NOISE]


def _name(tokens: Iterable[Token]) -> Iterator[str]:
    yield from (token.name for token in _plain(tokens)[:1] if token.is_name)


def _added(rest: Sequence[Token]) -> Iterator[str]:
    plain = _plain(rest)
    if plain and plain[0].text == "(":
        for definition in split_at_commas(plain[1:-1]):
            if definition[0].keyword not in _NO_COLUMN:
                yield definition[0].name
    else:
        yield from _name(plain)


def _index(rest: Sequence[Token]) -> Iterator[str]:
    if rest[0].keyword == "PRIMARY":
        yield "primary"
    elif rest[0].keyword in _KINDS_OF_INDEX:
        names = [token for token in _plain(rest) if token.keyword not in _KINDS_OF_INDEX]
        if names and names[0].keyword != "USING":
            yield from _name(names)


def _compare(before: Table, after: Table, found: Touched) -> None:
    were, are = columns_of(before), columns_of(after)
    found.dropped |= were - are - found.renamed
    found.added |= are - were
    for column in after.columns:
        former = before.column(column.name)
        if former is not None and former != column:
            found.converted.add(column_part(column.name))
    former_keys, keys = ({folded(key.name): key for key in table.keys} for table in (before, after))
    found.other |= {
        index_part(name)
        for name in former_keys.keys() | keys.keys()
        if former_keys.get(name) != keys.get(name)
    }
