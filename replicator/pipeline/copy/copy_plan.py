"""How the rows of one shard are copied: the query, its division into chunks, and the target.

A chunk is a range of the shard's key: the keys greater than ``lower`` and not greater than
``upper``. Each bound has values of the key's leading columns, or is None for an open end. So every
row belongs to exactly one chunk, even if it is inserted after the bounds were read.

If a shard's column and the target's column have the same type, and nothing needs to be converted,
values may be copied without becoming text. The target then stores the values as the shard's server
has them, instead of parsing text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from replicator.downstream.rows.literals import key_literal, needs_introducer
from replicator.downstream.rows.target_columns import TargetColumn, TargetTable, filled_columns
from replicator.mysql.column_types import Literal
from replicator.mysql.names import TableName, folded, quote
from replicator.pipeline.copy.changed_shard import ChangedShard, ChangedTooMuchError, filler
from replicator.pipeline.plans.planning import (
    PlanError,
    charset_change,
    filled_column,
    match_columns,
    no_label,
    target_column,
)
from replicator.pipeline.plans.shard_keys import held_keys
from replicator.routing.columns.column_mapping import VALUE_LIMIT, MappedColumn
from replicator.routing.columns.member_columns import AS_THEY_ARE, MemberColumns
from replicator.schema.structure.structure import (
    Column,
    Table,
    UniqueKey,
    labels_of,
    only_row_key_collides,
)

_OTHERS = frozenset(Literal) - {Literal.PARSED, Literal.JSON, Literal.GEOMETRY, Literal.VECTOR}
_MOST_BYTES = 65535
"""Length of the longest text that may be copied typed; longer ones, like JSON, may exceed the size
of a statement."""


def same_type(column: Column, counterpart: Column) -> bool:
    """Return whether the target's column can store the shard's values unconverted."""
    name = column.base_type
    kind = column.sql_type
    if kind.family == "integer":
        # Newer servers do not show the display width of integers.
        return name == counterpart.base_type and column.unsigned == counterpart.unsigned
    if name == "year":
        return {column.type.lower(), counterpart.type.lower()} <= {"year", "year(4)"}
    same = column.type == counterpart.type and _charset(column) == _charset(counterpart)
    return same and kind.literal in _OTHERS and bool(kind.stored) and kind.size <= _MOST_BYTES


def _charset(column: Column) -> str:
    # Older servers know utf8mb3 only as utf8.
    return "utf8mb3" if column.charset == "utf8" else column.charset


Bound = tuple[bytes, ...] | None
"""The fields (as in a row line) of a row's leading key columns; None for an open end."""

_ORDERED = frozenset(
    {Literal.NUMBER, Literal.QUOTED, Literal.TEXT, Literal.BINARY, Literal.BIT, Literal.PARSED}
)
"""Types whose values compare with a literal in the order of a key. ENUM and SET are missing, since
a key orders them by number. So are types that a literal can't represent exactly."""


@dataclass(frozen=True, slots=True)
class TargetShard:
    """Another shard of a target, which may have a key that the target has.

    Attributes:
        rules: how its columns are mapped to the target's.
    """

    source: str
    table: TableName
    rules: MemberColumns


class SnapshotTable(NamedTuple):
    """A table read in a snapshot: its quoted name, and whether its engine supports snapshots."""

    name: bytes
    transactional: bool


@dataclass(frozen=True, slots=True)
class TableCopy:
    """One shard and its target, as executors need to know them.

    Attributes:
        fingerprint: fingerprint of the shard's structure after the statements before ``known_to``.
        selected: the items of the SELECT.
        columns: the target's columns, in the order of ``selected``.
        key_name: the unique key by which the shard is divided into chunks; empty if there is none.
        key: the leading columns of that key whose order is known; empty without a key.
        transcodes: (index, from, to) of the columns whose text is converted to another charset.
        exact: whether the target identifies rows by no key of the shard, so a row that is copied
            and also applied from the binlog would be there twice. Such a shard is one chunk, read
            at a known position.
        transactional: whether the shard's engine supports snapshots.
        read_from: the table that now has the shard's rows.
        conditions: conditions of the WHERE, besides the bounds of a chunk.
        known_to: position in the shard's binlog; 0 if none is known.
        gone_at: the position at which the shard lost all of its rows, so that nothing is read; None
            while it has them.
        mapped: the column whose values are mapped.
        typed: whether values are copied without becoming text.
        target_key: the columns that identify the target's rows; empty if ``exact``.
        other_shards: the other shards that may have a row with the same key, if the target may have
            rows of this shard from its binlog; otherwise None.
        again: whether the shard is copied once more.
    """

    source: str
    schema: str
    table: str
    fingerprint: str
    target: TargetTable
    selected: tuple[bytes, ...]
    columns: tuple[TargetColumn, ...]
    key_name: str
    key: tuple[TargetColumn, ...]
    transcodes: tuple[tuple[int, str, str], ...]
    exact: bool
    transactional: bool
    read_from: TableName
    conditions: tuple[bytes, ...] = ()
    known_to: int = 0
    gone_at: int | None = None
    mapped: MappedColumn | None = None
    typed: bool = False
    target_key: tuple[TargetColumn, ...] = ()
    other_shards: tuple[TargetShard, ...] | None = None
    again: bool = False

    def key_of(self, line: bytes) -> bytes:
        """Return the key line of a row line."""
        names = [folded(column.name) for column in self.columns]
        fields = line.split(b"\t")
        return b"\t".join(fields[names.index(folded(c.name))] for c in self.target_key)

    @property
    def member(self) -> TableName:
        """The shard, by its name when the copy began."""
        return TableName(self.schema, self.table)

    @property
    def name(self) -> bytes:
        """The quoted, qualified name of the table that holds the shard's rows."""
        return self.read_from.quoted.encode()

    def __str__(self) -> str:
        return f"{self.source}: {self.schema}.{self.table}"


@dataclass(frozen=True, slots=True)
class CopyChunk:
    """One chunk of a shard; ``number`` counts from 0 in the order of the key."""

    copy: TableCopy
    number: int
    lower: Bound
    upper: Bound


def plan_copy(
    source: str,
    structure: Table,
    fingerprint: str,
    target: Table,
    target_number: int,
    rules: MemberColumns = AS_THEY_ARE,
    condition: str = "",
    changed: ChangedShard | None = None,
) -> TableCopy:
    """Return the plan for copying a shard with this structure. Columns are matched by name.

    Args:
        rules: how the shard's columns are mapped.
        condition: SQL condition for the rows to copy; empty for all rows.
        changed: how to read the shard's rows, if it has another structure by now.

    Raises:
        PlanError: values would be lost or changed.
        ChangedTooMuchError: former values can't be read any more.
    """
    member = f"{source}: {structure.schema}.{structure.name}"
    pairs = match_columns(member, structure, target, rules)
    filled = [filled_column(member, target, column) for column in rules.extracted]
    transcodes = _transcodes(member, structure, pairs, changed)
    row_key = structure.row_key
    columns = (*pairs.values(), *(column for column, _ in filled))
    written = (
        *(target_column(its, structure.columns[i]) for i, its in pairs.items()),
        *(target_column(column) for column, _ in filled),
    )
    keyed = _keyed(target, columns)
    key = cutting_columns(structure, row_key) if keyed and row_key else ()
    key_name = row_key.name if row_key and key else ""
    if changed is not None:
        if not keyed and not changed.same:
            raise ChangedTooMuchError(
                "its target has no key, so the binlog can't correct rows that have changed since"
            )
        key = tuple(replace(column, name=changed.names[folded(column.name)]) for column in key)
        key_name = changed.key_name if key else ""
    selected = [
        *(selected_value(structure.columns[i], its, rules, changed) for i, its in pairs.items()),
        *(b"x'%s'" % value.hex().encode() for _, value in filled),
    ]
    return TableCopy(
        source=source,
        schema=structure.schema,
        table=structure.name,
        fingerprint=fingerprint,
        target=_target_table(structure, target, target_number, rules, columns),
        # If all columns are generated, a row is an empty line, and only the number of lines counts.
        selected=tuple(selected) or (b"''",),
        columns=written,
        key_name=key_name,
        key=key,
        transcodes=transcodes,
        exact=not keyed,
        transactional=structure.transactional,
        read_from=changed.name if changed else TableName(structure.schema, structure.name),
        conditions=(
            *(changed.conditions if changed else ()),
            *((condition.encode(),) if condition else ()),
        ),
        mapped=_mapped(rules, changed),
        typed=changed is None and not transcodes and _typed(structure, pairs, written),
        target_key=_key_columns(target) if keyed else (),
    )


def _target_table(
    structure: Table,
    target: Table,
    number: int,
    rules: MemberColumns,
    written: Iterable[Column],
) -> TargetTable:
    names = [column.name for column in written]
    return TargetTable(
        number=number,
        schema=target.schema,
        table=target.name,
        buckets=1,
        replace=only_row_key_collides(target, names),
        filled=filled_columns(target, names),
        held=held_keys(structure, target, rules),
        write_rules=target.write_rules,
    )


def _typed(structure: Table, pairs: Mapping[int, Column], written: Iterable[TargetColumn]) -> bool:
    same = [same_type(structure.columns[index], its) for index, its in pairs.items()]
    return bool(same) and all(same) and not any(map(needs_introducer, written))


def keyed_by_target(structure: Table, target: Table, rules: MemberColumns) -> bool:
    """Return whether columns that the shard writes identify its rows on the target."""
    names = {folded(column.name) for column in structure.columns}
    names |= {folded(column.name) for column in rules.extracted}
    found = (column for column in target.columns if folded(column.name) in names)
    return _keyed(target, (column for column in found if not column.generated))


def _keyed(target: Table, columns: Iterable[Column]) -> bool:
    # A key of the target's own, such as an AUTO_INCREMENT one, does not identify shards' rows.
    own_key = target.row_key.columns if target.row_key else ()
    written = {folded(column.name) for column in columns}
    return bool(own_key) and written.issuperset(map(folded, own_key))


def _transcodes(
    member: str, structure: Table, pairs: Mapping[int, Column], changed: ChangedShard | None
) -> tuple[tuple[int, str, str], ...]:
    """Return `TableCopy.transcodes`. Raises PlanError, also for columns of unknown types."""
    transcodes = []
    for place, (index, counterpart) in enumerate(pairs.items()):
        column = structure.columns[index]
        if not column.sql_type.stored:
            raise PlanError(
                f"{member}: column {column.name} has the type {column.type}, which the task does"
                " not know. Leave the table out (block-allow-list), or change the column's type"
            )
        if changed is not None and changed.expressions[folded(column.name)] is None:
            continue
        text = "json" if column.base_type == "json" and not column.charset else ""
        codecs = charset_change(member, column, counterpart, text)
        if codecs:
            transcodes.append((place, *codecs))
    return tuple(transcodes)


def boundary_query(copy: TableCopy, lower: Bound, rows: int) -> bytes:
    """Return a query for the hex key of the last of ``rows`` rows after ``lower``.

    If the result is empty, the chunk has no upper bound. The shard must have a key to divide by.
    """
    names = [quote(column.name) for column in copy.key]
    selected = ",".join(map(_bound_text, copy.key))
    return b"SELECT %s FROM %s FORCE INDEX (%s)%s ORDER BY %s LIMIT 1 OFFSET %d" % (
        selected.encode(),
        copy.name,
        quote(copy.key_name).encode(),
        _where(_bounds(copy, lower, None)),
        ",".join(names).encode(),
        rows - 1,
    )


def _bound_text(column: TargetColumn) -> str:
    name = quote(column.name)
    # Cast to binary, these types would give their stored bytes, which no literal accepts.
    text = f"CONVERT({name} USING utf8mb4)" if column.literal is Literal.PARSED else name
    return f"HEX(CAST({text} AS BINARY))"


def chunk_query(chunk: CopyChunk) -> bytes:
    """Return the query for the rows of a chunk."""
    copy = chunk.copy
    hint = b" FORCE INDEX (%s)" % quote(copy.key_name).encode() if copy.key else b""
    bounds = _bounds(copy, chunk.lower, chunk.upper)
    if not bounds:
        hint = b""
    where = _where([*bounds, *copy.conditions])
    return b"SELECT %s FROM %s%s%s" % (b",".join(copy.selected), copy.name, hint, where)


def no_room_query(chunk: CopyChunk) -> bytes:
    """Return a query for one value of a chunk's mapped column that is too large or negative."""
    copy = chunk.copy
    assert copy.mapped is not None, f"{copy} has no mapped column"
    name = quote(copy.mapped.name).encode()
    no_room = b"(%s<0 OR %s>=%d)" % (name, name, VALUE_LIMIT)
    where = _where([*_bounds(copy, chunk.lower, chunk.upper), no_room])
    return b"SELECT %s FROM %s%s LIMIT 1" % (name, copy.name, where)


def _bounds(copy: TableCopy, lower: Bound, upper: Bound) -> list[bytes]:
    return [
        key_range(copy.key, bound, sign)
        for bound, sign in ((lower, b">"), (upper, b"<"))
        if bound is not None
    ]


def _where(conditions: list[bytes]) -> bytes:
    return b" WHERE " + b" AND ".join(conditions) if conditions else b""


def key_range(key: tuple[TargetColumn, ...], bound: tuple[bytes, ...], sign: bytes) -> bytes:
    """Return the condition for the rows on one side of a bound; with ``<``, including the bound.

    MySQL before 8 does not use a comparison of whole rows, (a,b) > (1,2), to find a range (manual,
    "Range Optimization of Row Constructor Expressions"). So the columns are compared one by one,
    and the first one twice, since servers find the range by that comparison.
    """
    names = [quote(column.name).encode() for column in key]
    values = [key_literal(column, field) for column, field in zip(key, bound, strict=True)]
    last = sign + (b"=" if sign == b"<" else b"")
    condition = names[-1] + last + values[-1]
    for name, value in zip(reversed(names[:-1]), reversed(values[:-1]), strict=True):
        condition = b"(%s%s%s OR (%s=%s AND %s))" % (name, sign, value, name, value, condition)
    if len(names) > 1:
        condition = b"%s%s=%s AND %s" % (names[0], sign, values[0], condition)
    return condition


def cutting_columns(structure: Table, key: UniqueKey) -> tuple[TargetColumn, ...]:
    """Return the leading columns of a key whose order is known, by which ranges can be cut."""
    columns: list[TargetColumn] = []
    for name in key.columns:
        column = structure.column(name)
        if column is None or column.base_type == "set":
            break
        if (found := target_column(column)).literal not in _ORDERED:
            break
        columns.append(found)
    return tuple(columns)


def _key_columns(target: Table) -> tuple[TargetColumn, ...]:
    names = target.row_key.columns if target.row_key else ()
    return tuple(target_column(c) for name in names if (c := target.column(name)) is not None)


def _mapped(rules: MemberColumns, changed: ChangedShard | None) -> MappedColumn | None:
    """Return the mapped column by its present name in the shard; None if it was dropped."""
    mapped = rules.mapped
    if mapped is None or changed is None:
        return mapped
    name = changed.names.get(folded(mapped.name))
    return None if name is None else replace(mapped, name=name)


def selected_value(
    column: Column, target: Column, rules: MemberColumns, changed: ChangedShard | None = None
) -> bytes:
    """Return the SQL selected for a column of a shard; ``changed`` as for `plan_copy`."""
    found = quote(column.name).encode()
    if changed is not None:
        expression = changed.expressions[folded(column.name)]
        if expression is None:
            return filler(target)
        found = expression
    mapped = rules.mapped
    if mapped is not None and folded(mapped.name) == folded(column.name):
        # A value without room ends the query with an error: the sum exceeds the largest integer.
        return b"IF(%s<0 OR %s>=%d,(%s|0)+18446744073709551615,%s|%d)" % (
            found,
            found,
            VALUE_LIMIT,
            found,
            found,
            mapped.upper,
        )
    unlabelled = target_column(target).unlabelled
    if column.base_type == "enum" and unlabelled:
        # The value with index 0 is displayed like the label ''. Its text is converted like a label.
        text = no_label(labels_of(target)).encode().hex().encode()
        shown = b"CONVERT(_ascii x'%s' USING %s)" % (text, column.charset.encode())
        return b"IF(%s+0=0,CAST(%s AS BINARY),CAST(%s AS BINARY))" % (found, shown, found)
    # As text, a FLOAT has six digits, but as a DOUBLE all of its digits. Use a multiplication,
    # since adding zero would lose the sign of a negative zero.
    return found + b"*1e0" if column.base_type == "float" else found
