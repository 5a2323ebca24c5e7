"""The ALTER actions that give a target the parts on which all its members agree.

A column is redefined by the target's own text, in which only these parts change: every other part
of it belongs to the join, or to the operator.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from replicator.ddl.parser.tokens import Token
from replicator.ddl.rewrite.default_collations import charset_of
from replicator.mysql.names import folded, quote
from replicator.schema.effects.check_constraints import check_text
from replicator.schema.effects.column_values import definition_of, text_of, value_clause
from replicator.schema.structure.structure import Table
from replicator.sharding.optimistic.agreement import (
    ORDER,
    Part,
    PartKind,
    order_of,
    outer,
    update_clause,
    values_of,
)
from replicator.sharding.optimistic.column_order import charset
from replicator.sharding.optimistic.fills import fill_of
from replicator.sharding.optimistic.shapes import index_texts

_OF_COLUMNS = frozenset(
    {
        PartKind.DEFAULT,
        PartKind.COMMENT,
        PartKind.VISIBILITY,
        PartKind.COLLATION,
        PartKind.SPELLING,
    }
)


def differing_parts(
    target: Table, wanted: Mapping[Part, str | None], compared: Collection[str] = ()
) -> frozenset[Part]:
    """Return the parts on which members agree and in which the target differs.

    Args:
        compared: the columns whose collations belong to the join, since a key compares them.
    """
    values = values_of(target)
    found = {
        part
        for part, value in wanted.items()
        if value is not None and part in values and values[part] != value
        if part[0] is not PartKind.COLLATION
        or (part[1] not in compared and _has_charset_of(target, part[1], value))
    }
    if (order := wanted.get(ORDER)) is not None and _ordered(target, order) != _names(target):
        found.add(ORDER)
    return frozenset(found)


def _has_charset_of(target: Table, name: str, collation: str) -> bool:
    """Return whether a collation belongs to a column's charset.

    While the target has another charset for the rows of former shards, it does not. The step that
    ends this changes the collation, too.
    """
    column = target.column(name)
    return column is not None and charset(column) == charset_of(collation)


def agreement_actions(
    target: Table,
    parts: Collection[Part],
    wanted: Mapping[Part, str | None],
    members: Sequence[Table],
) -> dict[tuple[Part, ...], str]:
    """Return the actions of an ALTER TABLE that give the target the values of these parts.

    Each action has its parts as the key. A part is left out if the task knows no action for it.
    """
    found: dict[tuple[Part, ...], str] = {}
    order = wanted.get(ORDER) if ORDER in parts else None
    moved = dict(_moves(_names(target), _ordered(target, order))) if order is not None else {}
    by_column: dict[str, list[Part]] = {name: [] for name in moved}
    for part in sorted(parts):
        if part[0] in _OF_COLUMNS:
            by_column.setdefault(part[1], []).append(part)
        elif part[0] is PartKind.KEY_NAME and (
            action := _named_keys(target, wanted[part], part, members)
        ):
            found[part,] = action
        elif part[0] is PartKind.TABLE_COMMENT:
            found[part,] = f"COMMENT={_literal(wanted[part] or '')}"
        elif part[0] is PartKind.TABLE_COLLATION and (value := wanted[part]):
            name, _, collation = value.partition(" ")
            found[part,] = f"DEFAULT CHARACTER SET {name} COLLATE {collation}"
    for name, own in by_column.items():
        text = _redefined(target, name, own, members)
        if text is not None:
            place = moved.get(name)
            done = (*own, ORDER) if place is not None else tuple(own)
            verb = f"CHANGE COLUMN {quote(name)}" if (PartKind.SPELLING, name) in own else "MODIFY"
            found[done] = f"{verb} {text}{place or ''}"
    return found


def _names(table: Table) -> list[str]:
    return [folded(column.name) for column in table.columns]


def _ordered(target: Table, order: str) -> list[str]:
    """Return the target's columns in the members' order.

    Other columns stay after their neighbours.
    """
    there = _names(target)
    found = [name for name in order_of(order) if name in there]
    for place, name in enumerate(there):
        if name not in found:
            found.insert(found.index(there[place - 1]) + 1 if place else 0, name)
    return found


def _moves(present: Sequence[str], wanted: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the columns that have to move, in this order, with their new positions."""
    places = [present.index(name) for name in wanted]
    # The longest run of columns that is already in order is not moved.
    best: list[tuple[int, ...]] = []
    for place in places:
        runs = [(len(run), run) for run in best if run[-1] < place]
        best.append((*max(runs, default=(0, ()))[1], place))
    staying = set(max(((len(run), run) for run in best), default=(0, ()))[1])
    for number, name in enumerate(wanted):
        if places[number] not in staying:
            yield name, f" AFTER {quote(wanted[number - 1])}" if number else " FIRST"


def _redefined(
    target: Table, name: str, parts: Iterable[Part], members: Sequence[Table]
) -> str | None:
    """Return the definition of a target's column with these parts as a member has them.

    Return None if the definition has a part that would be lost.
    """
    column = target.column(name)
    origin = next((table for table in members if table.column(name) is not None), None)
    words = definition_of(target.create_sql, name)
    if column is None or origin is None or not words:
        return None
    own = origin.column(name)
    assert own is not None
    if _UNKNOWN & {token.keyword for token in outer(words)} or _of_tidb(target, words):
        return None
    kinds = {kind for kind, _ in parts}
    sources = {kind: origin if kind in kinds else target for kind in _OF_COLUMNS}
    if PartKind.DEFAULT in kinds and fill_of(origin, own).shows_less:
        return None
    spelling = own.name if PartKind.SPELLING in kinds else column.name
    pieces = [quote(spelling), re.sub(r"/\*.*?\*/", "", column.type).strip()]
    if column.charset:
        collation = own.collation if PartKind.COLLATION in kinds else column.collation
        pieces.append(f"CHARACTER SET {column.charset} COLLATE {collation}")
    if column.generated:
        pieces.append(value_clause(target, name))
    else:
        values = sources[PartKind.DEFAULT]
        pieces.append("NULL" if column.nullable else "NOT NULL")
        default = value_clause(values, name)
        if column.nullable or not re.fullmatch(r"DEFAULT\s+NULL", default, flags=re.IGNORECASE):
            pieces.append(default)
        pieces.append(text_of(values.create_sql, update_clause(values, name)))
        pieces.append("AUTO_INCREMENT" if column.auto_increment else "")
    hidden = values_of(sources[PartKind.VISIBILITY])[PartKind.VISIBILITY, name]
    comment = values_of(sources[PartKind.COMMENT])[PartKind.COMMENT, name]
    pieces += ["INVISIBLE" if hidden else "", f"COMMENT {_literal(comment)}" if comment else ""]
    pieces.append(check_text(target.create_sql, words).strip())
    return " ".join(filter(None, pieces))


_UNKNOWN = frozenset(
    {
        *("COMPRESSED", "SRID", "REF_SYSTEM_ID", "COLUMN_FORMAT", "STORAGE", "AUTO_RANDOM"),
        *("WITHOUT", "WITH", "ROW", "UNIQUE", "REFERENCES"),
    }
)
"""Words of a definition that `_redefined` would lose."""


def _of_tidb(target: Table, words: Sequence[Token]) -> bool:
    """Return whether TiDB writes a part of the definition as a comment of its own."""
    return "/*T!" in target.create_sql[words[0].start : words[-1].end + 40].partition("\n")[0]


def _named_keys(target: Table, wanted: str | None, part: Part, members: Iterable[Table]) -> str:
    """Return the actions that give the target's unique keys over some columns the members' names.

    Afterwards the target has as many such keys as the members. The result is empty if the target
    has no such key, or if no member shows a missing one.
    """
    there, names = set(values_of(target).get(part, "").split()), set((wanted or "").split())
    old, new = sorted(there - names), sorted(names - there)
    renamed = min(len(old), len(new))
    texts: dict[str, str] = {}
    for table in members:
        texts |= index_texts(table)
    added = new[renamed:]
    if added and not (there and texts.keys() >= set(added)):
        return ""
    pairs = zip(old, new, strict=False)
    return ", ".join(
        [
            *(f"RENAME INDEX {quote(one)} TO {quote(other)}" for one, other in pairs),
            *(f"DROP INDEX {quote(name)}" for name in old[renamed:]),
            *(f"ADD {texts[name]}" for name in added),
        ]
    )


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
