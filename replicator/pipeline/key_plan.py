"""How the values of a target's unique key are read from one shard, to be compared with others."""

from __future__ import annotations

import re
from dataclasses import dataclass

from replicator.downstream.columns import TargetColumn
from replicator.mysql.names import TableName, folded, quote
from replicator.pipeline.copy_plan import Bound, cutting_columns, key_range
from replicator.pipeline.key_fields import KeyRule, key_rule
from replicator.pipeline.key_weights import Comparing
from replicator.pipeline.planning import charset_change
from replicator.routing.column_mapping import MappedColumn
from replicator.routing.member_columns import AS_THEY_ARE, MemberColumns
from replicator.rows.fields import escape
from replicator.schema.structure import Column, Table, UniqueKey

_PART = re.compile(r"`((?:[^`]|``)*)`(?:\((\d+)\))?")
_DEFAULT = re.compile(r"\bDEFAULT ('(?:[^'\\]|''|\\.)*'|[-+]?[0-9][^ ,]*|NULL)", re.IGNORECASE)
_TEXT = frozenset({KeyRule.TEXT, KeyRule.LABELS})


class UnreadableKeyError(Exception):
    """A key whose values on the target the shards alone do not tell; says why."""


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """One column of a target's key, as a member has it.

    ``selected`` is an item of a SELECT list, empty where all rows of the member have ``constant``
    (a field of a row line). ``transcode``: the codecs from and to which its text goes.
    ``comparing`` is set for text, ``charset`` that of the shard. ``mapped``: what is made of its
    numbers.
    """

    rule: KeyRule
    selected: bytes = b""
    constant: bytes = b""
    nullable: bool = False
    transcode: tuple[str, str] | None = None
    comparing: Comparing | None = None
    charset: str = ""
    mapped: MappedColumn | None = None


@dataclass(frozen=True, slots=True)
class KeyRead:
    """A key of a target (``key``, a number) as it is read from a member (``member``, a number).

    ``table`` is the shard's quoted name. Rows are read in the order of the columns ``order`` by the
    index ``index``; both are empty where none serves. ``apart``: these are other columns than those
    of the key, and selected behind them. ``condition``: which rows reach the target, as SQL, empty
    for all.
    """

    key: int
    member: int
    source: str
    table: bytes
    columns: tuple[KeyColumn, ...]
    index: str
    order: tuple[TargetColumn, ...]
    apart: bool
    condition: bytes = b""


def plan_key(
    place: tuple[int, int],
    source: str,
    structure: Table,
    target: Table,
    key: UniqueKey,
    rules: MemberColumns = AS_THEY_ARE,
    condition: str = "",
) -> KeyRead | None:
    """How a target's key is read from a shard; None where no row of it can have another's value.

    ``place`` are the numbers of key and member, ``condition`` is that of the rows which reach the
    target, as SQL. Raises UnreadableKeyError and
    `replicator.pipeline.planning.PlanError`.
    """
    lengths = _lengths(target, key)
    columns = []
    for name in key.columns:
        found = _column(source, structure, target, name, lengths.get(folded(name)), rules)
        if found is None:
            return None
        columns.append(found)
    own = _own_key(structure, key)
    by = own or structure.row_key
    order = cutting_columns(structure, by) if by else ()
    if by is None or len(order) < len(by.columns):
        by, order = None, ()
    return KeyRead(
        key=place[0],
        member=place[1],
        source=source,
        table=TableName(structure.schema, structure.name).quoted.encode(),
        columns=tuple(columns),
        index=by.name if by else "",
        order=order,
        apart=by is not None and (own is None or any(not c.selected for c in columns)),
        condition=condition.encode(),
    )


def is_kept_by(structure: Table, target: Table, key: UniqueKey) -> bool:
    """Whether the shard's own keys keep its rows apart in a target's key."""
    if key.prefix:
        return False
    wanted = set(map(folded, key.columns))
    return any(
        not own.prefix and wanted.issuperset(map(folded, own.columns)) and _alike(structure, target)
        for own in structure.keys
        if wanted.issuperset(map(folded, own.columns))
    )


def _alike(structure: Table, target: Table) -> bool:
    """Whether the columns of both are compared in the same way."""
    for column in structure.columns:
        its = target.column(column.name)
        if its is not None and column.collation and column.collation != its.collation:
            return False
    return True


def page_query(read: KeyRead, behind: Bound, rows: int) -> bytes:
    """Selects the next ``rows`` values of a key behind a bound of ``order``, in its order.

    Without an order it selects all values, or ``rows`` of them where that is not 0.
    """
    selected = [column.selected for column in read.columns if column.selected]
    names = [quote(column.name).encode() for column in read.order]
    if read.apart or not selected:
        selected += names
    conditions = [c.selected + b" IS NOT NULL" for c in read.columns if c.selected and c.nullable]
    if read.condition:
        conditions.append(b"(%s)" % read.condition)
    if behind is not None:
        conditions.append(key_range(read.order, behind, b">"))
    where = b" WHERE " + b" AND ".join(conditions) if conditions else b""
    hint = b" FORCE INDEX (%s)" % quote(read.index).encode() if read.index else b""
    order = b" ORDER BY " + b",".join(names) if names else b""
    limit = b" LIMIT %d" % rows if rows else b""
    fields = b",".join(selected) or b"''"
    return b"SELECT %s FROM %s%s%s%s%s" % (fields, read.table, hint, where, order, limit)


def place_query(read: KeyRead, offset: int, *, from_end: bool) -> bytes:
    """Selects the ``order`` of the row that comes ``offset`` rows behind the first or last one."""
    names = [quote(column.name).encode() for column in read.order]
    way = b" DESC" if from_end else b""
    return b"SELECT %s FROM %s FORCE INDEX (%s) ORDER BY %s LIMIT 1 OFFSET %d" % (
        b",".join(names),
        read.table,
        quote(read.index).encode(),
        b",".join(name + way for name in names),
        offset,
    )


def last_place(read: KeyRead, line: bytes) -> Bound:
    """The ``order`` of a row that `page_query` gave."""
    return tuple(line.split(b"\t")[-len(read.order) :])


def _column(
    source: str,
    structure: Table,
    target: Table,
    name: str,
    length: int | None,
    rules: MemberColumns,
) -> KeyColumn | None:
    its = target.column(name)
    if its is None:
        raise UnreadableKeyError(f"it is about an expression, {name}")
    extracted = next((c for c in rules.extracted if folded(c.name) == folded(name)), None)
    if extracted is not None:
        return _constant(its, escape(extracted.value.encode()))
    column = structure.column(name)
    if column is None:
        return None if its.auto_increment else _filled_by_default(target, its)
    rule = key_rule(column, its)
    text = rule in _TEXT and bool(its.charset)
    selected = quote(column.name).encode()
    if column.base_type == "float":
        # As text it has six digits, as a DOUBLE all that tell it apart.
        selected += b"*1e0"
    if length is not None:
        selected = b"LEFT(%s,%d)" % (selected, length)
    mapped = rules.mapped
    return KeyColumn(
        rule=rule,
        selected=selected,
        nullable=column.nullable,
        transcode=charset_change(f"{source}: {structure.name}", column, its, "") if text else None,
        comparing=Comparing(its.charset, its.collation) if text else None,
        charset=column.charset,
        mapped=mapped if mapped and folded(mapped.name) == folded(name) else None,
    )


def _constant(its: Column, value: bytes) -> KeyColumn:
    rule = key_rule(its, its)
    comparing = Comparing(its.charset, its.collation) if rule in _TEXT and its.charset else None
    codecs = charset_change("", Column(its.name, its.type, "utf8mb4"), its, "")
    return KeyColumn(
        rule=rule,
        constant=value,
        transcode=codecs if comparing else None,
        comparing=comparing,
    )


def _filled_by_default(target: Table, its: Column) -> KeyColumn | None:
    """A column that the shard lacks: it has the target's default in all of its rows."""
    if its.generated:
        raise UnreadableKeyError(f"the target computes its column {its.name}")
    for line in target.create_sql.splitlines():
        part = _PART.match(line.strip())
        if part is None or folded(part[1].replace("``", "`")) != folded(its.name):
            continue
        default = _DEFAULT.search(line, part.end())
        if default is None:
            break
        if default[1].upper() == "NULL":
            return None
        text = default[1].strip("'").replace("''", "'")
        return _constant(its, escape(text.encode()))
    raise UnreadableKeyError(f"the shard has no column {its.name}, and what fills it is not known")


def _own_key(structure: Table, key: UniqueKey) -> UniqueKey | None:
    wanted = list(map(folded, key.columns))
    for own in structure.keys:
        if not own.prefix and not key.prefix and list(map(folded, own.columns)) == wanted:
            return own
    return None


def _lengths(target: Table, key: UniqueKey) -> dict[str, int]:
    """The characters that a key covers of its columns, where these are not all."""
    if not key.prefix:
        return {}
    head = "PRIMARY KEY" if key.name == "PRIMARY" else f"UNIQUE KEY {quote(key.name)}"
    for line in map(str.strip, target.create_sql.splitlines()):
        if line.startswith(f"{head} ("):
            parts = _PART.findall(line[len(head) :])
            if [folded(name.replace("``", "`")) for name, _ in parts] == list(
                map(folded, key.columns)
            ):
                return {folded(n.replace("``", "`")): int(length) for n, length in parts if length}
    raise UnreadableKeyError("it is about an expression")
