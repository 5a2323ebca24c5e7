"""How the rows of one shard are copied: what is selected, how it is cut up, where it goes.

A chunk is a range of the shard's key: behind ``lower``, up to and with ``upper``, each the values
of the key's leading columns, or None for an open end. So whatever lies between the rows that the
ranges were made from belongs to exactly one chunk.

Which columns' values may pass from a shard to its target without becoming text on the way.

They are stored as the server of the shard has them then, instead of being read from text; that is
done where both columns have one type, so that there is nothing to convert.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from replicator.downstream.rows.literals import key_predicate, needs_introducer
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
"""Of texts: longer ones may be larger than a statement, as a JSON may be."""


def same_type(column: Column, counterpart: Column) -> bool:
    """Whether values of a shard's column may pass to the target's as they are."""
    name = column.base_type
    kind = column.sql_type
    if kind.family == "integer":
        # Newer servers do not show how wide integers are displayed.
        return name == counterpart.base_type and column.unsigned == counterpart.unsigned
    if name == "year":
        return {column.type.lower(), counterpart.type.lower()} <= {"year", "year(4)"}
    same = column.type == counterpart.type and _charset(column) == _charset(counterpart)
    return same and kind.literal in _OTHERS and bool(kind.stored) and kind.size <= _MOST_BYTES


def _charset(column: Column) -> str:
    # One charset, by the name that it had before there was another one.
    return "utf8mb3" if column.charset == "utf8" else column.charset


Bound = tuple[bytes, ...] | None
"""The fields (as in a row line) of a row's leading key columns; None: no bound."""

_ORDERED = frozenset(
    {Literal.NUMBER, Literal.QUOTED, Literal.TEXT, Literal.BINARY, Literal.BIT, Literal.PARSED}
)
"""Types whose values compare with a literal in the order in which a key holds them: not ENUM and
SET, which a key orders by number, nor those that a literal can't name exactly."""


@dataclass(frozen=True, slots=True)
class TargetShard:
    """Another shard of a target, which may have a key that the target has; ``rules`` say what is
    made of its columns."""

    source: str
    table: TableName
    rules: MemberColumns


class SnapshotTable(NamedTuple):
    """A table that is read in a snapshot: its quoted name, and whether its engine shows one."""

    name: bytes
    transactional: bool


@dataclass(frozen=True, slots=True)
class TableCopy:
    """One shard and its target, as executors need to know them.

    ``fingerprint`` is that of the structure which the shard has, by the statements before the place
    ``known_to`` of its binlog (0 where none is known); its rows are in the table ``read_from``.
    ``selected``: the items of a SELECT, ``conditions``: those of its WHERE besides the chunk's
    bounds, ``columns`` are their counterparts in the target. ``key_name`` and ``key``: the unique
    key that the shard is cut up by, and those of its leading columns that serve; both empty where
    none does. ``gone_at``: the place at which all of its rows went, so that none is to be read;
    None while it is there. ``transcodes``: (index, from, to) of the columns whose text goes to
    another charset.
    ``exact``: the target tells its rows apart by no key that the shard has, so that a row that is
    copied and then applied from the binlog would be there twice. Such a shard is one chunk, read at
    a known position. ``transactional``: the shard's engine shows a snapshot of it. ``mapped``: the
    column whose values are mapped. ``typed``: the values may pass without becoming text.
    ``target_key``: those of ``columns`` that tell the target's rows apart; empty where ``exact``.
    ``other_shards``: where rows of this shard may be on the target by its binlog, the other
    shards that a row with the same key may be of; else None.
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

    def key_of(self, line: bytes) -> bytes:
        """The key line of a row line."""
        names = [folded(column.name) for column in self.columns]
        fields = line.split(b"\t")
        return b"\t".join(fields[names.index(folded(c.name))] for c in self.target_key)

    @property
    def member(self) -> TableName:
        """The shard, by the name that it had when the copy began."""
        return TableName(self.schema, self.table)

    @property
    def name(self) -> bytes:
        """The quoted, qualified name of the table that its rows are in."""
        return self.read_from.quoted.encode()

    def __str__(self) -> str:
        return f"{self.source}: {self.schema}.{self.table}"


@dataclass(frozen=True, slots=True)
class CopyChunk:
    """One chunk of a shard; ``number`` counts them from 0 in the order of the key."""

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
    """The plan for copying a shard with this structure. Columns are matched by name.

    ``rules`` say what is made of them; ``condition`` is that of the rows which are copied, as SQL,
    empty for all; ``changed``: where its rows are, if it has another structure by now. Raises
    PlanError where values would be lost or changed, ChangedTooMuchError where they can't be had
    any more.
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
        # Where all columns are computed a row is an empty line: what counts is how many there are.
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
    """Whether the target tells the rows of a shard apart, by columns that the shard writes."""
    names = {folded(column.name) for column in structure.columns}
    names |= {folded(column.name) for column in rules.extracted}
    found = (column for column in target.columns if folded(column.name) in names)
    return _keyed(target, (column for column in found if not column.generated))


def _keyed(target: Table, columns: Iterable[Column]) -> bool:
    # A key of the target's own, such as a number it gives, tells no rows of the shards apart.
    own_key = target.row_key.columns if target.row_key else ()
    written = {folded(column.name) for column in columns}
    return bool(own_key) and written.issuperset(map(folded, own_key))


def _transcodes(
    member: str, structure: Table, pairs: Mapping[int, Column], changed: ChangedShard | None
) -> tuple[tuple[int, str, str], ...]:
    """As `TableCopy.transcodes`. Raises PlanError also for columns of unknown types."""
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
    """Selects the key, in hex, of the last row of a chunk of ``rows`` rows behind ``lower``.

    No row: the chunk has no upper bound. The shard must have a key to cut by.
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
    # As binary these give the bytes that they are stored in, which no literal takes.
    text = f"CONVERT({name} USING utf8mb4)" if column.literal is Literal.PARSED else name
    return f"HEX(CAST({text} AS BINARY))"


def chunk_query(chunk: CopyChunk) -> bytes:
    """Selects the rows of a chunk."""
    copy = chunk.copy
    hint = b" FORCE INDEX (%s)" % quote(copy.key_name).encode() if copy.key else b""
    bounds = _bounds(copy, chunk.lower, chunk.upper)
    if not bounds:
        hint = b""
    where = _where([*bounds, *copy.conditions])
    return b"SELECT %s FROM %s%s%s" % (b",".join(copy.selected), copy.name, hint, where)


def no_room_query(chunk: CopyChunk) -> bytes:
    """Selects a value of the mapped column of a chunk that has no room; no row: each has."""
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
    """Rows on one side of a bound; with the bound itself where the sign is ``<``.

    A comparison of whole rows, (a,b) > (1,2), is not used to look up a range by MySQL before 8
    (manual, "Range Optimization of Row Constructor Expressions"), so the columns are compared one
    by one, and the first once more, since that is what servers find the range by.
    """
    names = [quote(column.name).encode() for column in key]
    values = [key_predicate(column, field) for column, field in zip(key, bound, strict=True)]
    last = sign + (b"=" if sign == b"<" else b"")
    condition = names[-1] + last + values[-1]
    for name, value in zip(reversed(names[:-1]), reversed(values[:-1]), strict=True):
        condition = b"(%s%s%s OR (%s=%s AND %s))" % (name, sign, value, name, value, condition)
    if len(names) > 1:
        condition = b"%s%s=%s AND %s" % (names[0], sign, values[0], condition)
    return condition


def cutting_columns(structure: Table, key: UniqueKey) -> tuple[TargetColumn, ...]:
    """The leading columns of a table's key whose order is known, by which ranges can be cut."""
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
    """The mapped column, by the name that the shard has for it now; None where it is dropped."""
    mapped = rules.mapped
    if mapped is None or changed is None:
        return mapped
    name = changed.names.get(folded(mapped.name))
    return None if name is None else replace(mapped, name=name)


def selected_value(
    column: Column, target: Column, rules: MemberColumns, changed: ChangedShard | None = None
) -> bytes:
    """What is selected for a column of a shard, as SQL; ``changed`` as for `plan_copy`."""
    found = quote(column.name).encode()
    if changed is not None:
        expression = changed.expressions[folded(column.name)]
        if expression is None:
            return filler(target)
        found = expression
    mapped = rules.mapped
    if mapped is not None and folded(mapped.name) == folded(column.name):
        # A value without room ends the query with an error: no number is so large, with a bit more.
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
        # Index 0, which is shown like the label ''. The text is converted like any label.
        text = no_label(labels_of(target)).encode().hex().encode()
        shown = b"CONVERT(_ascii x'%s' USING %s)" % (text, column.charset.encode())
        return b"IF(%s+0=0,CAST(%s AS BINARY),CAST(%s AS BINARY))" % (found, shown, found)
    # As text a FLOAT has six digits; as a DOUBLE it has all that tell it apart. Multiplied, since
    # adding zero would lose the sign of a negative zero.
    return found + b"*1e0" if column.base_type == "float" else found
