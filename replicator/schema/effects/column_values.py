"""What a column that is added gives the rows that are there already: its default, or its formula.

Pure, from the text of SHOW CREATE TABLE; two texts compare where one server wrote both.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from replicator.ddl.parser.alter_actions import split_at_commas
from replicator.ddl.parser.tokens import Token, TokenKind, tokenise
from replicator.mysql.names import folded
from replicator.schema.effects.expression_forms import expression_form
from replicator.schema.structure.shown_values import stored_value
from replicator.schema.structure.structure import Column, Table


def other_values(shard: Table, target: Table, columns: Iterable[str]) -> tuple[str, ...]:
    """The columns whose values for older rows differ between a shard and its target.

    Looks at those of ``columns`` that both have. ``shard`` is as the target's server writes it.
    """
    found = []
    for name in columns:
        own, there = shard.column(name), target.column(name)
        if own is None or there is None:
            continue
        text = value_text(shard, own.name)
        clauses = value_clause(shard, own.name), value_clause(target, there.name)
        same = text == value_text(target, there.name) or _stores_same(own, there, clauses)
        if not same or _rounds_otherwise(own, there, text):
            found.append(own.name)
    return tuple(found)


def keyed_values(
    columns: Iterable[str], before: Table | None, after: Table | None, target: Table | None
) -> tuple[str, ...]:
    """Those of a shard's columns with values of its own that are new in a key that finds rows.

    Args:
        columns: the columns.
        before: the shard's structure before its statement, if it is known.
        after: the one after it.
        target: the target's structure.
    """
    keys = [table.row_key for table in (after, target) if table is not None]
    keyed = {folded(name) for key in keys if key is not None for name in key.columns}
    new = [
        name
        for name in columns
        if folded(name) in keyed and (before is None or before.column(name) is None)
    ]
    return tuple(name for name in new if not is_alike(after, target, name))


def counting(table: Table | None, name: str) -> tuple[str, ...]:
    """A column that counts up by its name; if that is empty, as a shard has it."""
    columns = () if table is None else table.columns
    return (name,) if name else tuple(one.name for one in columns if one.auto_increment)


def in_unique_keys(columns: Iterable[str], table: Table | None) -> set[str]:
    """Those of some columns by which rows of a table are told apart: those in unique keys, all
    without a key. All if the table is not known."""
    if table is None or table.row_key is None:
        return set(columns)
    keyed = {folded(name) for key in table.keys for name in key.columns}
    return {name for name in columns if folded(name) in keyed}


def queued_values(columns: Iterable[str], after: Table | None, target: Table) -> tuple[str, ...]:
    """Those columns of a key which finds rows after a statement, and not before it, in which rows
    of the target may still have other values than in their shards.

    Args:
        columns: the columns that are still to be reconciled; some may have got another name.
        after: the shard's structure after the statement, if it is known.
        target: the target's structure before it.
    """
    queued = set(map(folded, columns))
    if not queued or after is None:
        return ()
    if after.row_key is None and target.row_key is None:
        # All columns were compared before, too.
        return ()
    renamed = any(target.column(name) is None for name in queued)
    new = _found_by(after) - _found_by(target)
    return tuple(sorted(name for name in new if renamed or name in queued))


def _found_by(table: Table) -> frozenset[str]:
    """The columns by whose values a row of a table is found; all without a key."""
    key = table.row_key
    names = [column.name for column in table.columns] if key is None else key.columns
    return frozenset(map(folded, names))


def is_alike(shard: Table | None, target: Table | None, name: str) -> bool:
    """Whether both have a column that gives older rows the same values.

    A default that is another value at each moment or execution counts as the same.
    """
    if shard is None or target is None or target.column(name) is None:
        return False
    return not other_values(shard, target, [name])


def _stores_same(own: Column, there: Column, clauses: tuple[str, str]) -> bool:
    """Whether two defaults, written in their own ways, are the same value.

    False if a column is computed, or if the values are not known.
    """
    word = "DEFAULT "
    if not all(clause.startswith(word) for clause in clauses):
        return False
    mine, theirs = (
        stored_value(column, clause.removeprefix(word))
        for column, clause in zip((own, there), clauses, strict=True)
    )
    return mine is not None and mine == theirs


def _rounds_otherwise(own: Column, there: Column, clause: str) -> bool:
    """Whether a FLOAT, which becomes a DOUBLE later, gets another number from the same text."""
    if {own.base_type, there.base_type} != {"float", "double"} or clause in ("", "DEFAULT NULL"):
        return False
    try:
        number = float(clause.removeprefix("DEFAULT "))
        return bool(struct.unpack("f", struct.pack("f", number))[0] != number)
    except (ValueError, OverflowError):
        return True  # A formula, or more than a FLOAT holds.


def value_clause(table: Table, column: str) -> str:
    """The default or the formula of a column, as a clause of its definition; empty where there is
    neither."""
    found = table.defined(column)
    if found is not None and found.generated is not None:
        return f"GENERATED ALWAYS AS {found.generated.text} {found.generated.storage}".rstrip()
    default = found.default if found is not None else None
    return f"DEFAULT {default.text}" if default is not None else ""


def comment(table: Table, column: str) -> str:
    """Return the comment of a column in quotes, empty if it has none."""
    words = next((item for item in items_of(table.create_sql) if _defines(item, column)), ())
    for word, following in pairwise(words):
        if word.keyword == "COMMENT":
            return following.text
    return ""


def _defines(item: Sequence[Token], column: str) -> bool:
    return item[0].kind is TokenKind.QUOTED and folded(item[0].name) == folded(column)


def value_columns(table: Table, column: str, *, unmasked: int | None = None) -> tuple[str, ...]:
    """The columns that the default or the formula of a column is made of, as the table has them.

    With ``unmasked`` without those of which only these bits are used (`` `a` & 255``).
    """
    clause = tokenise(value_clause(table, column))
    mask = ["&", str(unmasked)]
    used = [
        folded(token.name)
        for place, token in enumerate(clause)
        if token.kind is TokenKind.QUOTED
        and [following.text for following in clause[place + 1 : place + 3]] != mask
    ]
    if not used:
        return ()
    names = {folded(found.name): found.name for found in table.columns}
    return tuple(dict.fromkeys(names[name] for name in used if name in names))


def value_text(table: Table, column: str) -> str:
    """The default or the formula of a column in one way of writing; empty where there is none."""
    return " ".join(map(_text, tokenise(value_clause(table, column))))


def definition_of(create_sql: str, column: str) -> Sequence[Token]:
    """What stands behind a column's name in the text of SHOW CREATE TABLE."""
    return _definitions(create_sql).get(folded(column), ())


@lru_cache(maxsize=16)
def _definitions(create_sql: str) -> Mapping[str, Sequence[Token]]:
    """What stands behind each column's name, by that name.

    Kept, since it is asked for column by column, of which there may be thousands.
    """
    return {
        folded(item[0].name): item[1:]
        for item in items_of(create_sql)
        if item[0].kind is TokenKind.QUOTED
    }


def items_of(create_sql: str) -> Sequence[Sequence[Token]]:
    """The definitions of columns, keys and constraints in the text of SHOW CREATE TABLE."""
    tokens = tokenise(create_sql)
    start = next((n for n, token in enumerate(tokens) if token.text == "("), len(tokens))
    depth, end = 0, start
    for end in range(start, len(tokens)):
        depth += (tokens[end].text == "(") - (tokens[end].text == ")")
        if depth == 0:
            break
    return split_at_commas(tokens[start + 1 : end])


def text_of(create_sql: str, tokens: Sequence[Token]) -> str:
    """The text of some words of a statement; an executable comment that begins in it ends there."""
    if not tokens:
        return ""
    opened = False
    for one, other in pairwise(tokens):
        gap = create_sql[one.end : other.start]
        if "/*" in gap or "*/" in gap:
            opened = gap.rfind("/*") > gap.rfind("*/")
    return create_sql[tokens[0].start : tokens[-1].end] + (" */" if opened else "")


def with_items(create_sql: str, texts: Iterable[str]) -> str:
    """A CREATE statement with these definitions in place of its own."""
    items = items_of(create_sql)
    end = items[-1][-1].end
    # Behind the last one, an executable comment may end.
    rest = create_sql[max(end, create_sql.find("\n)", end)) :]
    return create_sql[: items[0][0].start] + ",\n  ".join(texts) + rest


def _text(token: Token) -> str:
    if token.kind is TokenKind.STRING:
        # A number stands in quotes, or not, by the column's type.
        return token.text[1:-1]
    return token.keyword or token.text


def other_formula(
    shard: Table, target: Table, column: str, *, unmasked: int | None = None
) -> str | None:
    """How a column that both compute is not computed alike, whichever servers wrote it; or None.

    With ``unmasked``, the target may use only these bits of a column (`` `a` & 255``).
    """
    ours = formula_form(shard, column)
    if ours == formula_form(target, column):
        return None
    if unmasked is not None and ours == formula_form(target, column, unmasked=unmasked):
        return None
    mine, its = value_clause(shard, column), value_clause(target, column)
    return f"{column} is {mine} in the shard and {its} in the target"


def formula_form(table: Table, column: str, *, unmasked: int | None = None) -> str:
    """What the formula of a column is compared by where several servers write it; ``unmasked``:
    without the mask of these bits."""
    text = formula(table, column)
    if not text:
        return ""
    if unmasked is not None:
        text = re.sub(rf"(?<=`) & {unmasked}\b", "", text)
    return expression_form(text)


def formula(table: Table, column: str) -> str:
    """A generated column's formula, with its brackets; empty for other columns."""
    found = table.defined(column)
    return found.generated.text if found is not None and found.generated is not None else ""
