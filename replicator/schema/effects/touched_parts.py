"""Which parts of a table, its columns and indexes, a statement touches: from text and structures.

Pure. Structures alone do not tell: ``DROP c, ADD c INT`` and two columns that exchange their names
may leave a structure as it was. Text alone does not tell what CONVERT TO CHARACTER SET comes to.
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
_INDEX = frozenset({"INDEX", "KEY"})
_KINDS_OF_INDEX = frozenset({"UNIQUE", "FULLTEXT", "SPATIAL"}) | _INDEX
_NO_COLUMN = _KINDS_OF_INDEX | {
    *("PRIMARY", "CONSTRAINT", "FOREIGN", "CHECK", "PARTITION", "PERIOD", "SYSTEM")
}
_SAME_TYPE = {"json": "longtext", "year(4)": "year"}
"""Names of one type on different servers."""


@dataclass(slots=True)
class Touched:
    """The parts that a statement touches, by `column_part` and `index_part`.

    ``dropped``: columns whose values go; ``renamed``: those that lose their name, and
    ``named`` the names that they get; ``pairs``: the folded names before and after by which these
    go together; ``converted``: those that are changed in place; ``added``:
    columns that come, also by a new name; ``other``: indexes and defaults.
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
        """All of them."""
        return self.taken | self.added | self.other

    @property
    def taken(self) -> frozenset[str]:
        """The columns that are dropped, renamed or converted."""
        return frozenset(self.dropped | self.renamed | self.converted)


def column_part(name: str) -> str:
    """A column as a part; names of columns compare without case."""
    return f"column {folded(name)}"


def name_of_column(part: str) -> str:
    """The folded name of a column that is a part."""
    return part.removeprefix("column ")


def index_part(name: str) -> str:
    """An index as a part."""
    return f"index {folded(name)}"


def columns_of(table: Table | None) -> frozenset[str]:
    """The columns of a table as parts; none of one that is missing."""
    return frozenset(column_part(column.name) for column in table.columns) if table else frozenset()


def same_type(one: Column, other: Column) -> bool:
    """Whether two servers show one type, each in its way."""
    return _shown(one.type) == _shown(other.type)


def _shown(column_type: str) -> str:
    # MySQL 8 leaves out the display width that older servers show: int(11) is int.
    shown = re.sub(r"int\(\d+\)", "int", column_type.lower())
    return _SAME_TYPE.get(shown, shown)


def touched_parts(statement: ParsedStatement, change: MemberChange) -> Touched:
    """What an ALTER TABLE, CREATE INDEX or DROP INDEX touches."""
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
    """Which of these ALTER TABLEs of a ghost table leaves open what values its rows have.

    Tools copy rows by the names of columns. gh-ost and pt-online-schema-change follow CHANGE, but
    not RENAME COLUMN, after which the new column is empty; and pt-online-schema-change copies a
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
    """Without the words that may stand before a name."""
    return [token for token in tokens if token.keyword not in _NOISE]


def _name(tokens: Iterable[Token]) -> Iterator[str]:
    """The name that comes first, if one does."""
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
    """The index of ADD or DROP, if it is about one that has a name."""
    if rest[0].keyword == "PRIMARY":
        yield "primary"
    elif rest[0].keyword in _KINDS_OF_INDEX:
        names = [token for token in _plain(rest) if token.keyword not in _KINDS_OF_INDEX]
        if names and names[0].keyword != "USING":
            yield from _name(names)


def _compare(before: Table, after: Table, found: Touched) -> None:
    """Add what the structures tell."""
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
