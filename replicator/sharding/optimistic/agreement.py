"""The parts of tables that do not affect rows, and on which the members agree or not.

Defaults, comments, the order of columns and similar parts are not part of the join. If all members
have the same value of such a part, the target gets it. This follows from the members' structures
alone, so the order of their statements does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise

from replicator.ddl.parser.tokens import Token, TokenKind, tokenise
from replicator.mysql.names import folded
from replicator.schema.effects.column_values import definition_of, items_of, value_clause
from replicator.schema.effects.expression_forms import expression_form
from replicator.schema.structure.structure import Column, Table, unquoted
from replicator.sharding.optimistic.fills import fill_of
from replicator.sharding.optimistic.shard_states import ShardState


class PartKind(StrEnum):
    """The kind of a part."""

    DEFAULT = "default"
    COMMENT = "comment"
    VISIBILITY = "visibility"
    COLLATION = "collation"
    SPELLING = "spelling"
    KEY_NAME = "name of the unique key"
    ORDER = "order of columns"
    FOREIGN_KEY = "foreign key"
    TABLE_COMMENT = "table's comment"
    TABLE_COLLATION = "table's default collation"


Part = tuple[PartKind, str]
"""A kind, and the folded name of the column or of the key's columns."""
ORDER: Part = (PartKind.ORDER, "")
TABLE_COLLATION: Part = (PartKind.TABLE_COLLATION, "")
_OF_KEYS = frozenset({PartKind.KEY_NAME, PartKind.FOREIGN_KEY})

_GENERAL = {"latin1": "latin1_swedish_ci", "binary": "binary"}


def described_part(part: Part) -> str:
    """Return the words for a part in a message."""
    kind, name = part
    if not name:
        return kind.value
    return f"{kind.value} ({name})" if kind in _OF_KEYS else f"{kind.value} of {name}"


@lru_cache(maxsize=4096)
def values_of(table: Table) -> Mapping[Part, str]:
    """Return a table's parts except the order of its columns, in one form for all servers."""
    return _values_of(table.unnamed)


@lru_cache(maxsize=1024)
def _values_of(table: Table) -> Mapping[Part, str]:
    found: dict[Part, str] = {}
    for column in table.columns:
        name = folded(column.name)
        words = definition_of(table.create_sql, column.name)
        found[PartKind.DEFAULT, name] = _default(table, column)
        found[PartKind.COMMENT, name] = _comment(words)
        found[PartKind.SPELLING, name] = column.name
        found[PartKind.VISIBILITY, name] = "invisible" if _is_invisible(words) else ""
        if column.charset:
            found[PartKind.COLLATION, name] = same_name(column.collation)
    for key in table.keys:
        if not key.prefix:
            # A unique key over the columns of the primary key is not a separate constraint.
            part = PartKind.KEY_NAME, ", ".join(sorted(map(folded, key.columns)))
            names = {*found.get(part, "").split(), folded(key.name)} - {"primary"}
            found[part] = " ".join(sorted(names))
    return found | _options(table)


def _default(table: Table, column: Column) -> str:
    clause = "" if column.generated else value_clause(table, column.name)
    body = re.sub(r"^DEFAULT\s+", "", clause, flags=re.IGNORECASE).strip()
    text = ""
    if body and body.upper() != "NULL":
        fill = fill_of(table, column)
        text = f"= {fill.text}" if fill.constant or fill.shows_less else _expression(body)
    words = [token.text.lower() for token in update_clause(table, column.name)]
    return " ".join([text, *words]).removesuffix(" ( )").strip()


def _expression(text: str) -> str:
    now = re.fullmatch(r"(?:current_timestamp|now)(?:\((\d*)\))?", text, flags=re.IGNORECASE)
    return f"current_timestamp {now[1] or ''}" if now else expression_form(text)


def update_clause(table: Table, column: str) -> Sequence[Token]:
    """Return the words ON UPDATE … of a column; empty if it has none."""
    words = outer(definition_of(table.create_sql, column))
    for place, token in enumerate(words):
        if token.keyword == "ON" and place + 2 < len(words):
            end = words[place + 3].start if place + 3 < len(words) else None
            inner = definition_of(table.create_sql, column)
            return [t for t in inner if t.start >= token.start and (end is None or t.start < end)]
    return ()


def outer(words: Sequence[Token]) -> list[Token]:
    """Return the words of a definition that are outside parentheses."""
    found, depth = [], 0
    for token in words:
        depth -= token.text == ")"
        if depth == 0 and token.text not in "()":
            found.append(token)
        depth += token.text == "("
    return found


def _comment(words: Sequence[Token]) -> str:
    plain = outer(words)
    texts = (
        unquoted(after.text)
        for token, after in pairwise(plain)
        if token.keyword == "COMMENT" and after.kind is TokenKind.STRING
    )
    return next(texts, "")


def _is_invisible(words: Sequence[Token]) -> bool:
    return any(token.keyword == "INVISIBLE" for token in outer(words))


def same_name(collation: str) -> str:
    """Return a collation by the name that newer servers have for it."""
    return re.sub(r"^utf8_", "utf8mb3_", collation.lower())


def _options(table: Table) -> dict[Part, str]:
    items = items_of(table.create_sql)
    if not items:
        return {}
    tail = [token for token in tokenise(table.create_sql) if token.start >= items[-1][-1].end]
    values: dict[str, str] = {}
    for token, equals, value in zip(tail, tail[1:], tail[2:], strict=False):
        if token.keyword == "PARTITION":
            break
        if equals.text == "=":
            values[token.keyword] = value.text
    charset = re.sub("^utf8$", "utf8mb3", values.get("CHARSET", "").lower())
    default = _GENERAL.get(charset, f"{charset}_general_ci")
    collation = same_name(values.get("COLLATE", default))
    comment = values.get("COMMENT", "")
    return {
        (PartKind.TABLE_COMMENT, ""): unquoted(comment) if comment else "",
        TABLE_COLLATION: f"{charset} {collation}" if charset else "",
    }


def agreed(shard_states: Iterable[ShardState]) -> dict[Part, str | None]:
    """Return `agreed_parts` of members; empty if the structure of a member is not known.

    A column does not count if the operator has answered that the member may differ in it.
    """
    tables: list[tuple[Table, Set[str]]] = []
    for shard_state in shard_states:
        if shard_state.taken is None:
            return {}
        tables.append((shard_state.taken, shard_state.ceded))
    return agreed_parts(tables)


def agreed_parts(tables: Iterable[tuple[Table, Set[str]]]) -> dict[Part, str | None]:
    """Return the parts of all tables with the values on which they agree, or None if they differ.

    Each table is given with the columns (folded names) that do not count.
    """
    found: dict[Part, str | None] = {}
    orders: list[tuple[str, ...]] = []
    for table, left_out in tables:
        orders.append(tuple(folded(column.name) for column in table.columns))
        for part, value in values_of(table).items():
            if part[1] in left_out and part[0] is not PartKind.KEY_NAME:
                continue
            if found.setdefault(part, value) != value:
                found[part] = None
    if orders:
        found[ORDER] = _joint_order([*dict.fromkeys(orders)])
    return found


def order_of(text: str) -> list[str]:
    """Return the columns of the value of `ORDER`."""
    return text.split("\0")


def _joint_order(orders: Sequence[Sequence[str]]) -> str | None:
    """Return all columns in an order that fits all members; None if there is none."""
    found = list(orders[0])
    for order in orders[1:]:
        for place, name in enumerate(order):
            if name not in found:
                found.insert(found.index(order[place - 1]) + 1 if place else 0, name)
    places = {name: place for place, name in enumerate(found)}
    for order in orders:
        own = [places[name] for name in order]
        if own != sorted(own):
            return None
    return "\0".join(found)


def changed_parts(
    before: Mapping[Part, str | None], after: Mapping[Part, str | None], there: Set[str]
) -> frozenset[Part]:
    """Return the parts whose values on the target may have to change.

    A new column is included if the target already had it, since the statement that adds it to a
    member has not set its default and other parts on the target. A new foreign key is included
    because its statement may not have been executed unchanged on the target.

    ``there``: the columns that the target had before.
    """
    found = {part for part in before.keys() & after.keys() if before[part] != after[part]}
    one, other = before.get(ORDER), after.get(ORDER)
    if one is not None and other is not None:
        shared = set(order_of(one)) & set(order_of(other))
        same = [n for n in order_of(one) if n in shared] == [
            n for n in order_of(other) if n in shared
        ]
        found -= {ORDER} if same else set()
    new = after.keys() - before.keys()
    found |= {part for part in new if part[1] in there or part[0] is PartKind.FOREIGN_KEY}
    return frozenset(found)
