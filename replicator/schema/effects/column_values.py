"""The value that an added column gets in existing rows: its default or its formula.

The values are read from the text of SHOW CREATE TABLE. Two texts are comparable if the same server
wrote both.
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
    """Return the columns whose values in older rows differ between a shard and its target.

    Compares the given columns that both tables have. ``shard`` must be in the form in which the
    target's server shows it.
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
    """Return a shard's new columns in keys that identify rows, if their values differ.

    Args:
        columns: names of the columns to check.
        before: the shard's structure before its statement, if known.
        after: its structure after the statement.
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
    """Return the AUTO_INCREMENT column: the given name, or the shard's if `name` is empty."""
    columns = () if table is None else table.columns
    return (name,) if name else tuple(one.name for one in columns if one.auto_increment)


def in_unique_keys(columns: Iterable[str], table: Table | None) -> set[str]:
    """Return the given columns that identify rows of a table.

    These are the columns in unique keys, or all columns if the table has no key or is unknown.
    """
    if table is None or table.row_key is None:
        return set(columns)
    keyed = {folded(name) for key in table.keys for name in key.columns}
    return {name for name in columns if folded(name) in keyed}


def queued_values(columns: Iterable[str], after: Table | None, target: Table) -> tuple[str, ...]:
    """Return columns of the new row key in which the target's rows may differ from their shards'.

    These are columns that identify rows after a statement but not before it.

    Args:
        columns: columns that must still be reconciled; some may have been renamed.
        after: the shard's structure after the statement, if known.
        target: the target's structure before the statement.
    """
    queued = set(map(folded, columns))
    if not queued or after is None:
        return ()
    if after.row_key is None and target.row_key is None:
        # All columns identified rows before, too.
        return ()
    renamed = any(target.column(name) is None for name in queued)
    new = _found_by(after) - _found_by(target)
    return tuple(sorted(name for name in new if renamed or name in queued))


def _found_by(table: Table) -> frozenset[str]:
    """Return the columns that identify a row of a table; all if it has no key."""
    key = table.row_key
    names = [column.name for column in table.columns] if key is None else key.columns
    return frozenset(map(folded, names))


def is_alike(shard: Table | None, target: Table | None, name: str) -> bool:
    """Return whether both tables have a column that gets the same values in older rows.

    A default that changes with each moment or execution counts as the same.
    """
    if shard is None or target is None or target.column(name) is None:
        return False
    return not other_values(shard, target, [name])


def _stores_same(own: Column, there: Column, clauses: tuple[str, str]) -> bool:
    """Return whether two defaults have the same value, however they are written.

    Return False if a column is generated or a value is unknown.
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
    """Return whether a FLOAT gets another number from a text than a DOUBLE that becomes a FLOAT."""
    if {own.base_type, there.base_type} != {"float", "double"} or clause in ("", "DEFAULT NULL"):
        return False
    try:
        number = float(clause.removeprefix("DEFAULT "))
        return bool(struct.unpack("f", struct.pack("f", number))[0] != number)
    except (ValueError, OverflowError):
        return True  # A formula, or out of the range of FLOAT.


def value_clause(table: Table, column: str) -> str:
    """Return a column's DEFAULT or GENERATED clause; empty if it has neither."""
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
    """Return the columns used in the default or the formula of a column, by the table's names.

    ``unmasked``: leave out a column if only these bits of it are used (`` `a` & 255``).
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
    """Return a column's default or formula in normalised form; empty if there is none."""
    return " ".join(map(_text, tokenise(value_clause(table, column))))


def definition_of(create_sql: str, column: str) -> Sequence[Token]:
    """Return the tokens after a column's name in the text of SHOW CREATE TABLE."""
    return _definitions(create_sql).get(folded(column), ())


@lru_cache(maxsize=16)
def _definitions(create_sql: str) -> Mapping[str, Sequence[Token]]:
    """Return the tokens after each column's name, by the folded name.

    Cached because callers need one column at a time, and there may be thousands.
    """
    return {
        folded(item[0].name): item[1:]
        for item in items_of(create_sql)
        if item[0].kind is TokenKind.QUOTED
    }


def items_of(create_sql: str) -> Sequence[Sequence[Token]]:
    """Return the definitions of columns, keys and constraints in the text of SHOW CREATE TABLE."""
    tokens = tokenise(create_sql)
    start = next((n for n, token in enumerate(tokens) if token.text == "("), len(tokens))
    depth, end = 0, start
    for end in range(start, len(tokens)):
        depth += (tokens[end].text == "(") - (tokens[end].text == ")")
        if depth == 0:
            break
    return split_at_commas(tokens[start + 1 : end])


def text_of(create_sql: str, tokens: Sequence[Token]) -> str:
    """Return the text of these tokens; an executable comment that begins in it is closed."""
    if not tokens:
        return ""
    opened = False
    for one, other in pairwise(tokens):
        gap = create_sql[one.end : other.start]
        if "/*" in gap or "*/" in gap:
            opened = gap.rfind("/*") > gap.rfind("*/")
    return create_sql[tokens[0].start : tokens[-1].end] + (" */" if opened else "")


def with_items(create_sql: str, texts: Iterable[str]) -> str:
    """Return a CREATE statement with these definitions instead of its own."""
    items = items_of(create_sql)
    end = items[-1][-1].end
    # An executable comment may end after the last definition.
    rest = create_sql[max(end, create_sql.find("\n)", end)) :]
    return create_sql[: items[0][0].start] + ",\n  ".join(texts) + rest


def _text(token: Token) -> str:
    if token.kind is TokenKind.STRING:
        # Whether a server quotes a number depends on the column's type.
        return token.text[1:-1]
    return token.keyword or token.text


def other_formula(
    shard: Table, target: Table, column: str, *, unmasked: int | None = None
) -> str | None:
    """Return how the formulas of a column differ, whichever servers wrote them, or None.

    `unmasked`: the target may use only these bits of a column (`` `a` & 255``).
    """
    ours = formula_form(shard, column)
    if ours == formula_form(target, column):
        return None
    if unmasked is not None and ours == formula_form(target, column, unmasked=unmasked):
        return None
    mine, its = value_clause(shard, column), value_clause(target, column)
    return f"{column} is {mine} in the shard and {its} in the target"


def formula_form(table: Table, column: str, *, unmasked: int | None = None) -> str:
    """Return the form in which formulas are compared, without the mask of the `unmasked` bits."""
    text = formula(table, column)
    if not text:
        return ""
    if unmasked is not None:
        text = re.sub(rf"(?<=`) & {unmasked}\b", "", text)
    return expression_form(text)


def formula(table: Table, column: str) -> str:
    """Return a generated column's formula with its parentheses; empty for other columns."""
    found = table.defined(column)
    return found.generated.text if found is not None and found.generated is not None else ""
