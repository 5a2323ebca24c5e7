"""Plans how to read a target and its shards so that equal rows have equal row lines.

The plan of a shard's full copy (`replicator.pipeline.copy.copy_plan.plan_copy`) decides how its
rows are written. So routes, mapped and extracted columns, filters and charsets are applied in one
place. The target is read by the plan of a copy onto itself.

A *range* is a part of the target's key, after ``lower`` and up to and including ``upper``. Both are
fields of row lines.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from replicator.downstream.rows.literals import NULL_FIELD, field_value
from replicator.downstream.rows.target_columns import Restated, TargetColumn, restated_columns
from replicator.mysql.column_types import Literal
from replicator.mysql.names import TableName, folded, quote
from replicator.pipeline.compare.compare_structures import (
    ComparedShard,
    StructureDifferences,
    default_text,
    structure_differences,
)
from replicator.pipeline.compare.findings import ColumnLeftOut
from replicator.pipeline.compare.retired_rows import EXTRA, RowsOnTargetAlone, without
from replicator.pipeline.compare.value_forms import (
    Form,
    double_value,
    float_value,
    json_value,
    key_form,
)
from replicator.pipeline.copy.copy_plan import (
    SnapshotTable,
    TableCopy,
    cutting_columns,
    plan_copy,
    same_type,
)
from replicator.pipeline.copy.key_conflicts import KeyPart, key_parts
from replicator.pipeline.plans.planning import fill_field, target_column
from replicator.routing.columns.member_columns import MemberColumns
from replicator.rows.values.charsets import transcoder
from replicator.rows.values.fields import escape
from replicator.schema.structure.column_rules import as_mapped
from replicator.schema.structure.conversions import Fit, charset_conversion, conversion
from replicator.schema.structure.structure import Column, Table, UniqueKey

FLOATS = frozenset({Literal.FLOAT, Literal.DOUBLE})
"""Types whose values servers may write in different ways."""
_BY_BYTES = frozenset({Literal.TEXT, Literal.BINARY})


@dataclass(frozen=True, slots=True)
class ComparedTable:
    """How one table is read: a shard, or the target if ``source`` is empty.

    Attributes:
        selected: an SQL expression for each compared column, in the same order for all tables.
        conditions: SQL conditions of the table's rows.
        where: SQL conditions of the rows to compare. They do not apply to rows that are read by
            key, since they may be true on one side only.
        transcodes: (index, from, to) of the columns whose text is converted to another charset.
        cut: the columns that divide the table into ranges, by their names in this table.
        shifts: for each column of ``cut``, the number that the target adds to its values.
        index: the index that begins with the columns of ``cut``; empty if there is none.
        key: the target's key in this table, in the target's order.
        lacking: folded names of the compared columns that the table lacks.
        order: folded names of the compared columns that the table has, in its own order.
        transactional: whether its engine has snapshots.
    """

    source: str
    name: TableName
    selected: tuple[bytes, ...]
    conditions: tuple[bytes, ...] = ()
    where: tuple[bytes, ...] = ()
    transcodes: tuple[tuple[int, str, str], ...] = ()
    cut: tuple[TargetColumn, ...] = ()
    shifts: tuple[int, ...] = ()
    index: str = ""
    key: tuple[KeyPart, ...] = ()
    lacking: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    transactional: bool = True

    @property
    def snapshot(self) -> SnapshotTable:
        """The table, to be read at a known position of its binlog."""
        return SnapshotTable(self.name.quoted.encode(), self.transactional)

    def __str__(self) -> str:
        return f"{self.source}: {self.name}" if self.source else str(self.name)

    def written(self, line: bytes) -> bytes:
        """Return a row line of this table with the target's charsets, as it is written."""
        if not self.transcodes:
            return line
        fields = line.split(b"\t")
        for place, *codecs in self.transcodes:
            if fields[place] != NULL_FIELD:
                fields[place] = escape(transcoder(*codecs)(field_value(fields[place]) or b""))
        return b"\t".join(fields)


@dataclass(frozen=True, slots=True)
class ComparisonPlan:
    """How a target and its shards are compared. Columns are given by their index in ``columns``.

    Attributes:
        columns: the compared columns.
        key: columns that identify a row of the target; empty if there are none.
        nullable: columns that may be NULL.
        forms: (column, form) of the columns whose values can be written in several ways.
        checksums: whether most servers write all values alike, so that computing checksums is
            useful. Equal checksums prove equal rows; with ``forms``, different ones prove nothing.
        computed: columns that the target computes.
        further: the columns of each unique key besides ``key``.
        own_columns: whether the target stores columns that are not compared.
        structure: the result of `structure_differences`.
        filled: whether some shards lack compared columns.
        alone: the treatment of rows that only the target has.
        kept: names of columns that are not compared, and that the server would set to the present
            time in a changed row.
        lossy: the name of a column of shards that is not compared, so that a row would lose its
            value if it was inserted again; empty if there is none.
    """

    target: ComparedTable
    shards: tuple[ComparedTable, ...]
    columns: tuple[TargetColumn, ...]
    key: tuple[int, ...]
    nullable: tuple[int, ...]
    forms: tuple[tuple[int, Form], ...]
    checksums: bool
    computed: tuple[int, ...] = ()
    further: tuple[tuple[int, ...], ...] = ()
    own_columns: bool = False
    left_out: tuple[ColumnLeftOut, ...] = ()
    structure: StructureDifferences = field(default_factory=StructureDifferences)
    filled: bool = False
    alone: RowsOnTargetAlone = EXTRA
    kept: tuple[str, ...] = ()
    lossy: str = ""

    @property
    def key_names(self) -> tuple[str, ...]:
        """The folded names of the key's columns."""
        return tuple(folded(self.columns[place].name) for place in self.key)

    @property
    def ranged(self) -> bool:
        """Whether the tables can be compared range by range."""
        return bool(self.target.cut)

    def normal(self, written: bytes) -> bytes:
        """Convert a row line as written to the normal line; equal rows have equal normal lines."""
        if not self.forms:
            return written
        fields = written.split(b"\t")
        for place, form in self.forms:
            if fields[place] != NULL_FIELD:
                fields[place] = escape(form(fields[place]))
        return b"\t".join(fields)

    def key_of(self, line: bytes) -> bytes:
        """Return the key line of a normal row line; the whole line if no key identifies rows."""
        if not self.key:
            return line
        fields = line.split(b"\t")
        return b"\t".join([fields[place] for place in self.key])


def plan_comparison(
    target: Table,
    shards: Sequence[ComparedShard],
    where: str = "",
    *,
    joins: bool = False,
    alone: RowsOnTargetAlone = EXTRA,
) -> ComparisonPlan:
    """Plan how a target is compared with its shards. Columns are matched by name.

    A column that a shard lacks has its fill in the rows of the shard.

    Args:
        where: the SQL condition of the rows to compare.
        joins: whether shards may differ if the target accepts all of their rows.

    Raises `replicator.pipeline.plans.planning.PlanError` if a shard can't be read like the target.
    """
    fills = _fill_fields(target, shards) if joins else {}
    left_out = _left_out(target, shards, fills.keys(), joins=joins)
    compared = frozenset(folded(c.name) for c in target.columns) - {
        folded(out.column) for out in left_out
    }
    names = [c for c in target.columns if c.name not in {out.column for out in left_out}]
    stored = _without_formulas(target)
    itself = _copy_of("", target, stored, MemberColumns(), "")
    copies = [
        _copy_of(s.member.source, _common(s, target, compared), stored, s.rules, s.condition)
        for s in shards
    ]
    known = frozenset(folded(column.name) for column in names)
    cut = shared_order(target, target.row_key, shards, known) if target.row_key else ()
    forms, alike = _forms(names, shards)
    extra = (where.encode(),) if where else ()
    key = [folded(name) for name in (target.row_key.columns if target.row_key else ())]
    places = {folded(column.name): place for place, column in enumerate(names)}
    if not all(name in places for name in key):
        key = []
    of_key = [names[places[name]] for name in key]
    tables = [
        replace(
            _table(copy, structure, names, cut, extra, rules, fills),
            key=key_parts(of_key, target, rules, _lacking(fills, structure)),
            lacking=tuple(_lacking(fills, structure)),
            order=tuple(c for c in (folded(c.name) for c in structure.columns) if c in places),
        )
        for copy, structure, rules in (
            (itself, target, MemberColumns()),
            *((copy, s.structure, s.rules) for copy, s in zip(copies, shards, strict=True)),
        )
    ]
    hidden = without(alone.retired)
    return ComparisonPlan(
        target=replace(tables[0], conditions=(*tables[0].conditions, *hidden)),
        shards=tuple(tables[1:]),
        columns=tuple(map(target_column, names)),
        key=tuple(places[name] for name in key),
        nullable=tuple(p for p, c in enumerate(names) if _may_be_null(c, shards)),
        forms=forms,
        checksums=alike and not any(table.transcodes for table in tables),
        computed=tuple(place for place, column in enumerate(names) if column.generated),
        further=_further_keys(target, places),
        own_columns=any(c not in names and not c.generated for c in target.columns),
        left_out=left_out,
        structure=structure_differences(target, shards, joins=joins),
        filled=bool(fills),
        alone=alone,
        kept=_kept(target, names),
        lossy=_lossy(target, shards, left_out),
    )


def _further_keys(target: Table, places: Mapping[str, int]) -> tuple[tuple[int, ...], ...]:
    """Return the unique keys besides the row key, as the indexes of their columns."""
    return tuple(
        tuple(places[its] for its in map(folded, unique.columns) if its in places)
        for unique in target.keys
        if unique != target.row_key
    )


def _kept(target: Table, compared: Sequence[Column]) -> tuple[str, ...]:
    restated = restated_columns(target, [column.name for column in compared])
    return tuple(name for name, how in restated if how is Restated.KEPT)


def _lossy(
    target: Table, shards: Sequence[ComparedShard], left_out: Sequence[ColumnLeftOut]
) -> str:
    names = [out.column for out in left_out if target.column(out.column) is not None]
    return next((n for n in names if any(s.structure.column(n) is not None for s in shards)), "")


def _lacking(fills: Mapping[str, bytes], structure: Table) -> dict[str, bytes]:
    return {name: field for name, field in fills.items() if structure.column(name) is None}


def _copy_of(
    source: str, structure: Table, target: Table, rules: MemberColumns, condition: str
) -> TableCopy:
    return plan_copy(source, structure, structure.fingerprint, target, 0, rules, condition)


def _without_formulas(target: Table) -> Table:
    """Return the target without formulas that may differ from the shards'.

    So the values of these columns are compared.
    """
    columns = (replace(c, withheld=c.withheld or c.generated) for c in target.columns)
    return replace(target, columns=tuple(columns))


def _common(shard: ComparedShard, target: Table, compared: Collection[str]) -> Table:
    kept = []
    for its in shard.structure.columns:
        column = target.column(its.name) if folded(its.name) in compared else None
        if column is not None:
            # A NULL can be compared even if the target does not accept it.
            kept.append(replace(its, nullable=its.nullable and column.nullable))
    return replace(shard.structure, columns=tuple(kept))


def _other_values(shard: ComparedShard, target: Table, column: Column) -> bool:
    """Return whether an open statement may have changed values of a shard's older rows."""
    its = shard.structure.column(column.name)
    if its is None or folded(column.name) not in shard.open or column.generated:
        return False
    return default_text(shard.structure, its) != default_text(target, column)


def _unfit(shard: ComparedShard, column: Column) -> bool:
    its, mapped = shard.structure.column(column.name), shard.rules.mapped
    if its is None or column.generated:
        return False
    if mapped is not None and folded(mapped.name) == folded(column.name):
        its = as_mapped(its, column)
    return any(rule(its, column).fit is Fit.NONE for rule in (conversion, charset_conversion))


def _fill_fields(target: Table, shards: Sequence[ComparedShard]) -> dict[str, bytes]:
    """Return, by folded name, the target's field in a column that a row's shard lacks."""
    found = {}
    for column in target.columns:
        having = [_has(shard, column) for shard in shards]
        field = fill_field("", column) if column.fill else None
        name = folded(column.name)
        opened = any(name in s.open for s, has in zip(shards, having, strict=True) if not has)
        if field is not None and any(having) and not all(having) and not opened:
            found[name] = field
    return found


def _left_out(
    target: Table, shards: Sequence[ComparedShard], filled: Collection[str], *, joins: bool
) -> tuple[ColumnLeftOut, ...]:
    found = []
    for column in target.columns:
        lacking = [shard for shard in shards if not _has(shard, column)]
        if len(lacking) == len(shards):
            found.append(ColumnLeftOut(column.name, "no shard has it", harmless=True, absent=True))
        elif lacking and folded(column.name) not in filled:
            more = f" (and {len(lacking) - 1} more)" if len(lacking) > 1 else ""
            why = f"{lacking[0].member}{more} does not have it"
            found.append(ColumnLeftOut(column.name, why, harmless=joins))
        elif column.generated and not all(_same(shard, column) for shard in shards):
            found.append(ColumnLeftOut(column.name, "the target computes it as another type"))
        elif opened := [shard for shard in shards if _other_values(shard, target, column)]:
            why = f"a statement of {opened[0].member} that is open gives it other values"
            found.append(ColumnLeftOut(column.name, why, harmless=True))
        elif unfit := [shard for shard in shards if _unfit(shard, column)]:
            more = f" (and {len(unfit) - 1} more)" if len(unfit) > 1 else ""
            why = f"the target's type does not hold all values of {unfit[0].member}{more}"
            found.append(ColumnLeftOut(column.name, why))
    known = {folded(column.name) for column in target.columns}
    for shard in shards:
        for its in shard.structure.columns:
            if folded(its.name) not in known and not its.generated:
                known.add(folded(its.name))
                why = f"{shard.member} has it, the target does not"
                found.append(ColumnLeftOut(its.name, why, absent=True))
    return tuple(found)


def _has(shard: ComparedShard, column: Column) -> bool:
    extracted = {folded(made.name) for made in shard.rules.extracted}
    return folded(column.name) in extracted or shard.structure.column(column.name) is not None


def _may_be_null(column: Column, shards: Sequence[ComparedShard]) -> bool:
    pairs = (shard.structure.column(column.name) for shard in shards)
    return column.nullable or any(its is not None and its.nullable for its in pairs)


def _same(shard: ComparedShard, column: Column) -> bool:
    its = shard.structure.column(column.name)
    return its is not None and same_type(its, column)


def shared_order(
    target: Table, key: UniqueKey, shards: Sequence[ComparedShard], names: frozenset[str]
) -> tuple[TargetColumn, ...]:
    """Return the leading columns of a target's key that all tables sort alike.

    Only columns whose folded names are in ``names`` count.
    """
    found: list[TargetColumn] = []
    for column in cutting_columns(target, key):
        its = target.column(column.name)
        if its is None or folded(column.name) not in names:
            break
        if not all(_ordered_alike(shard, its) for shard in shards):
            break
        found.append(column)
    return tuple(found)


def _ordered_alike(shard: ComparedShard, column: Column) -> bool:
    if any(folded(made.name) == folded(column.name) for made in shard.rules.extracted):
        return False
    its = shard.structure.column(column.name)
    if its is None or (its.nullable and not column.nullable):
        # No range includes a NULL.
        return False
    if its.sql_type.family == column.sql_type.family == "integer":
        return True
    mapped = shard.rules.mapped
    if mapped is not None and folded(mapped.name) == folded(column.name):
        return False
    return same_type(its, column) and its.collation == column.collation


def _forms(
    columns: Sequence[Column], shards: Sequence[ComparedShard]
) -> tuple[tuple[tuple[int, Form], ...], bool]:
    """Return the forms of columns, and whether most servers write all values alike."""
    forms: list[tuple[int, Form]] = []
    alike = True
    for place, column in enumerate(columns):
        pairs = [its for s in shards if (its := s.structure.column(column.name)) is not None]
        if column.sql_type.literal in FLOATS:
            single = column.sql_type.literal is Literal.FLOAT
            forms.append((place, float_value if single else double_value))
            alike &= all(its.base_type == column.base_type for its in pairs)
        elif any("json" in (its.base_type, column.base_type) for its in pairs):
            forms.append((place, json_value))
            alike &= all(its.base_type == column.base_type for its in pairs)
        elif not all(_written_alike(its, column) for its in pairs):
            forms.append((place, key_form(column)))
            alike = False
    return tuple(forms), alike


def _written_alike(column: Column, its: Column) -> bool:
    if column.sql_type.family == its.sql_type.family == "integer":
        return "zerofill" not in column.type.lower() + its.type.lower()
    kinds = {column.sql_type.literal, its.sql_type.literal}
    if len(kinds) == 1 and kinds <= _BY_BYTES and column.base_type != "binary":
        return True
    return same_type(column, its) or (column.type == its.type and kinds == {Literal.GEOMETRY})


def _table(
    copy: TableCopy,
    structure: Table,
    columns: Sequence[Column],
    cut: Sequence[TargetColumn],
    where: tuple[bytes, ...],
    rules: MemberColumns,
    fills: Mapping[str, bytes],
) -> ComparedTable:
    written = {folded(column.name): place for place, column in enumerate(copy.columns)}
    codecs = {place: (source, target) for place, source, target in copy.transcodes}
    selected, transcodes = [], []
    for place, column in enumerate(columns):
        at = written.get(folded(column.name))
        if at is None and structure.column(column.name) is None:
            value = field_value(fills[folded(column.name)])
            selected.append(b"NULL" if value is None else b"x'%s'" % value.hex().encode())
            continue
        if at is None:
            # A generated column is compared as the server returns it.
            selected.append(quote(column.name).encode())
            continue
        selected.append(copy.selected[at])
        if at in codecs:
            transcodes.append((place, *codecs[at]))
    table = ComparedTable(
        source=copy.source,
        name=TableName(structure.schema, structure.name),
        selected=tuple(selected),
        conditions=copy.conditions,
        where=where,
        transcodes=tuple(transcodes),
        transactional=copy.transactional,
    )
    return ordered_by(table, structure, cut, rules)


def ordered_by(
    table: ComparedTable, structure: Table, cut: Sequence[TargetColumn], rules: MemberColumns
) -> ComparedTable:
    """Return the table with ranges by the target's columns ``cut`` (`shared_order`)."""
    own = [structure.column(column.name) for column in cut]
    mapped = rules.mapped
    shifts = [
        mapped.upper if mapped is not None and folded(mapped.name) == folded(column.name) else 0
        for column in cut
    ]
    names = [folded(column.name) for column in cut]
    index = next(
        (
            k.name
            for k in structure.keys
            if not k.prefix and list(map(folded, k.columns[: len(names)])) == names
        ),
        "",
    )
    return replace(
        table,
        cut=tuple(target_column(column) for column in own if column is not None),
        shifts=tuple(shifts),
        index=index if cut else "",
    )
