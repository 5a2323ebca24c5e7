"""Plans how the row events of a shard table become writes to its target.

A row event has types, but often no names, signedness, charsets or labels: these come from the
shard's structure in the registry. The metadata in the event is checked against that structure, so
that a wrong structure is detected and no row is falsified.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import replace

from replicator.binlog.errors import BinlogError
from replicator.binlog.events.table_map import TableMap
from replicator.downstream.rows.literals import NULL_FIELD
from replicator.downstream.rows.target_columns import filled_columns, restated_columns
from replicator.mysql.column_types import BINLOG_TYPES, ColumnType, Literal, Width
from replicator.mysql.names import Member, TableName, folded
from replicator.pipeline.plans.computed_columns import computed_misfits
from replicator.pipeline.plans.plan import TablePlan, TargetColumn, TargetTable
from replicator.pipeline.plans.row_filter import row_filter
from replicator.pipeline.plans.shard_keys import (
    compares_bytes,
    hashed_indexes,
    held_keys,
    key_indexes,
)
from replicator.pipeline.plans.value_misfits import value_misfit
from replicator.routing.columns.column_mapping import VALUE_LIMIT
from replicator.routing.columns.member_columns import AS_THEY_ARE, ExtractedColumn, MemberColumns
from replicator.routing.expression.expression_filter import ResolvedRules
from replicator.rows.values.charsets import charset_of, codec, encode_label
from replicator.rows.values.column_format import ColumnFormat, RowFormat
from replicator.rows.values.fields import escape
from replicator.schema.effects.column_values import value_clause
from replicator.schema.structure.column_rules import (
    RuleMisfit,
    as_mapped,
    extracted_misfit,
    mapped_misfit,
)
from replicator.schema.structure.conversions import affixes
from replicator.schema.structure.hidden_columns import hidden_columns, system_period, with_hidden
from replicator.schema.structure.shown_values import shown_value
from replicator.schema.structure.structure import (
    Column,
    Table,
    binary_length,
    fraction_digits,
    keys_without_overlaps,
    labels_of,
    only_row_key_collides,
)

_LABELLED = frozenset({"enum", "set"})

LAST_DIGITS = 2
"""A hundred neighbouring numbers are in one bucket: about a page of rows. If several buckets shared
a page, their transactions would fill and split it one after the other."""


class PlanError(Exception):
    """Rows of a shard can't be written to its target; the message has a remedy."""


class MisfitError(PlanError):
    """The structure is not the one of the events: the table was changed unnoticed."""


class UnfitTargetError(PlanError):
    """The target can't store the shard's values unchanged, whatever the rows contain."""


class MissingColumnError(UnfitTargetError):
    """The target lacks a column of the shard."""


def plan_table(
    member: Member,
    structure: Table,
    table_map: TableMap,
    target: Table,
    target_number: int,
    buckets: int,
    rules: MemberColumns = AS_THEY_ARE,
) -> TablePlan:
    """Return the plan for rows of a shard with this structure and table map. Raises PlanError.

    Columns are matched by name, then changed by the ``rules``. ``buckets``: number of parts into
    which the target's key space is divided, if that is possible.
    """
    member_name = str(member)
    pairs = match_columns(member_name, structure, target, rules)
    structure = with_hidden(structure, len(table_map.types))
    _check_structure(member_name, structure, table_map)
    # The event need not have a value that is computed on both sides.
    generated = frozenset(
        i for i, column in enumerate(structure.columns) if column.generated and i not in pairs
    )
    formats = tuple(
        _mapped(_column_format(member_name, column, pairs.get(i), table_map, i), rules)
        for i, column in enumerate(structure.columns)
    )
    filled = [
        (column, escape(value))
        for column, value in (filled_column(member_name, target, c) for c in rules.extracted)
    ]
    filled += _fills(member_name, target, {folded(c.name) for c in pairs.values()})
    pairs |= {len(formats) + n: column for n, (column, _) in enumerate(filled)}
    key = key_indexes(target.row_key, pairs)
    names = [column.name for column in pairs.values()]
    only_key = only_row_key_collides(target, names)
    hashed = hashed_indexes(key or tuple(pairs), pairs)
    colliding = bool(target.keys) and not only_key
    return TablePlan(
        target=TargetTable(
            number=target_number,
            schema=target.schema,
            table=target.name,
            buckets=1 if colliding or not hashed else buckets,
            replace=only_key,
            filled=filled_columns(target, names),
            held=held_keys(structure, target, rules),
            write_rules=target.write_rules,
        ),
        member=member,
        rows=RowFormat(
            columns=formats,
            written=tuple(pairs),
            key=key,
            hashed=hashed,
            generated=generated,
            until=_until(member_name, structure),
            constants=tuple(field for _, field in filled),
            hash_cut=LAST_DIGITS if hashed and _is_integer(pairs[hashed[-1]]) else 0,
        ),
        target_columns=tuple(
            target_column(column, *structure.columns[index : index + 1])
            for index, column in pairs.items()
        ),
        covers=len(pairs) == sum(not column.generated for column in target.columns),
        restated=restated_columns(target, names),
    )


def _is_integer(column: Column) -> bool:
    return column.sql_type.family == "integer"


def _mapped(column: ColumnFormat, rules: MemberColumns) -> ColumnFormat:
    mapped = rules.mapped
    if mapped is None or folded(mapped.name) != folded(column.name):
        return column
    return replace(column, upper=mapped.upper, limit=VALUE_LIMIT)


def filled_column(member: str, target: Table, made: ExtractedColumn) -> tuple[Column, bytes]:
    """Return the target's extracted column, and the value in its charset. Raises PlanError.

    The target must have passed `match_columns`.
    """
    column = target.column(made.name)
    assert column is not None, f"{target.name} has no column {made.name}"
    return column, _encoded(member, column, made.value, column.charset)


def _fills(member: str, target: Table, written: Collection[str]) -> Iterator[tuple[Column, bytes]]:
    """Yield the columns of the key that the rows lack, with the fields of their fills.

    If the whole row is the key, a row is found by its values in all columns.
    """
    key = None if target.row_key is None else {folded(name) for name in target.row_key.columns}
    for column in target.columns:
        if not column.fill or folded(column.name) in written:
            continue
        if key is not None and folded(column.name) not in key:
            continue
        field = fill_field(member, column)
        if field is None and key is not None:
            return
        if field is None:
            raise UnfitTargetError(
                f"{member} has no column {column.name}, and {target.schema}.{target.name} has no"
                " key: the task can't find rows of the shard by the value that they get there"
                f" ({column.fill}). Give the target a primary key, or give the shard the column"
            )
        yield column, field


def fill_field(member: str, column: Column) -> bytes | None:
    """Return the fill of a target's column as the field that the target shows; None if unknown.

    Raises PlanError if the column's charset can't encode the fill.
    """
    if column.fill == "NULL":
        return NULL_FIELD
    shown = shown_value(column, column.fill)
    return None if shown is None else escape(_encoded(member, column, shown, column.charset))


def parent_rows(
    member: Member, structure: Table, table_map: TableMap, wanted: Set[str], rules: MemberColumns
) -> RowFormat:
    """Return the row format for some (folded) columns of a parent's rows. Raises PlanError."""
    name = str(member)
    structure = with_hidden(structure, len(table_map.types))
    _check_structure(name, structure, table_map)
    written = tuple(i for i, c in enumerate(structure.columns) if folded(c.name) in wanted)
    return RowFormat(
        columns=tuple(
            _mapped(_column_format(name, column, None, table_map, i), rules)
            for i, column in enumerate(structure.columns)
        ),
        written=written,
        key=(),
        hashed=(),
        generated=frozenset(
            i for i, c in enumerate(structure.columns) if c.generated and i not in written
        ),
        until=_until(name, structure),
    )


def with_filter(
    plan: TablePlan, resolved: ResolvedRules, structure: Table, table_map: TableMap
) -> TablePlan:
    """Return the plan with filters for rows of a shard with this structure. Raises PlanError."""
    member = str(plan.member)
    structure = with_hidden(structure, len(table_map.types))
    # In the formats of the shard's columns, independent of the target's columns.
    formats = tuple(
        _column_format(member, column, None, table_map, i)
        for i, column in enumerate(structure.columns)
    )
    filtering = row_filter(resolved, structure, formats, keyed=bool(plan.rows.key))
    return replace(plan, filtering=filtering)


def _until(member: str, structure: Table) -> int | None:
    """Return the index of the column with the end of a row's period, if the events have it."""
    period = system_period(structure.create_sql)
    names = [folded(column.name) for column in structure.columns]
    if period is None or folded(period.end) not in names:
        return None
    index = names.index(folded(period.end))
    if structure.columns[index].base_type != "timestamp":
        raise PlanError(
            f"{member} is versioned by transactions ({period.end} is"
            f" {structure.columns[index].type}): the task can't tell which row is the current"
            " one. Leave the table out (block-allow-list), or give it a period of timestamp(6)"
        )
    return index


def _check_structure(member: str, structure: Table, table_map: TableMap) -> None:
    detail = misfit(member, structure, table_map)
    if detail:
        raise MisfitError(
            f"{member}: the known structure of this table does not fit its row events: {detail}."
            " The task has not seen a change of the table (a DDL was skipped or ran with"
            " sql_log_bin=0, or the start position is before the table's present structure). It"
            " has written nothing"
        )


def misfit(member: str, structure: Table, table_map: TableMap) -> str:
    """Return how a structure differs from the row events' metadata; empty if it fits.

    Raises PlanError for an unknown type.
    """
    structure = with_hidden(structure, len(table_map.types))
    known, sent = len(structure.columns), len(table_map.types)
    if known != sent:
        return f"the events have {sent} columns, the structure {known}"
    optional = table_map.optional
    for index, column in enumerate(structure.columns):
        code = table_map.types[index]
        allowed = column.sql_type.stored
        if not allowed:
            raise PlanError(
                f"{member}: column {column.name} has the type {column.type}, which is not known."
                " Leave the table out (block-allow-list), or change the column's type"
            )
        if code not in allowed:
            return f"column {column.name} is {column.type}, the events have type code {code}"
        if optional.names and folded(optional.names[index]) != folded(column.name):
            name = optional.names[index]
            return f"column {index + 1} is {column.name}, the events call it {name}"
        sign = optional.unsigned[index] if optional.unsigned else None
        if sign is not None and code != ColumnType.YEAR and sign != column.unsigned:
            words = "unsigned" if sign else "signed"
            return f"column {column.name} is {column.type}, the events' is {words}"
        labels = optional.labels[index] if optional.labels else None
        if labels is not None and labels != _labels(member, column, column.charset):
            return f"column {column.name} has other labels in the events"
    return ""


def match_columns(
    member: str, structure: Table, target: Table, rules: MemberColumns = AS_THEY_ARE
) -> dict[int, Column]:
    """Return the target's column for each written column, by its index in the shard's table.

    Extracted columns are left out, since the shard does not have them. Raises PlanError if values
    would be lost or changed, or the ``rules`` can't be applied.
    """
    _check_rules(member, structure, target, rules)
    mapped = folded(rules.mapped.name) if rules.mapped else None
    pairs: dict[int, Column] = {}
    path = dict(rules.path)
    for index, column in enumerate(structure.columns):
        name = path.get(folded(column.name), column.name)
        if not name:
            continue
        counterpart = target.column(name)
        if counterpart is None:
            if column.generated:
                continue
            raise MissingColumnError(
                f"{member}: column {name} does not exist in {target.schema}.{target.name}."
                " Its values would be lost"
            )
        if counterpart.generated or counterpart.withheld:
            continue
        values = as_mapped(column, counterpart) if folded(column.name) == mapped else column
        if found := value_misfit(values, counterpart, target, again=folded(column.name) in path):
            raise UnfitTargetError(f"{member}: {found.text}. {found.way_out}")
        pairs[index] = counterpart
    return pairs


def written_columns(structure: Table, target: Table, rules: MemberColumns) -> frozenset[str]:
    """Return the names of the target's columns that are written with rows of a shard."""
    path = dict(rules.path)
    names = {path.get(name, name) for name in (folded(c.name) for c in structure.columns)}
    names |= {folded(column.name) for column in rules.extracted}
    return frozenset(
        column.name
        for column in target.columns
        if folded(column.name) in names and not (column.generated or column.withheld)
    )


def _check_rules(member: str, structure: Table, target: Table, rules: MemberColumns) -> None:
    found: list[RuleMisfit | None] = [
        extracted_misfit(structure, target, column.name, column.value) for column in rules.extracted
    ]
    if rules.mapped is not None:
        found.append(mapped_misfit(structure, target, rules.mapped.name))
    found += computed_misfits(structure, target, rules)
    for misfit in filter(None, found):
        raise UnfitTargetError(
            f"{member}, target {target.schema}.{target.name}: {misfit.text}. {misfit.way_out}"
        )


def _column_format(
    member: str, column: Column, target: Column | None, table_map: TableMap, index: int
) -> ColumnFormat:
    code, metadata = table_map.types[index], table_map.metadata[index]
    if BINLOG_TYPES[code].unlogged_fraction:
        metadata = fraction_digits(column)
    written = target.charset if target is not None and target.charset else column.charset
    labelled = column.base_type in _LABELLED
    text = column.base_type if column.sql_type.family == "special" else ""
    if code == ColumnType.JSON:
        text = "json"
    transcode = None
    if not labelled and target is not None:
        transcode = charset_change(member, column, target, text)
    before, after = affixes(column, target) if target is not None else (b"", b"")
    return ColumnFormat(
        name=column.name,
        type_code=code,
        metadata=metadata,
        unsigned=column.unsigned,
        length=binary_length(column),
        labels=_labels(member, column, written) if labelled else (),
        unlabelled=target_column(target).unlabelled if target is not None else b"",
        separator=_encoded(member, column, ",", written) if labelled else b",",
        text=text,
        transcode=transcode,
        before=before,
        after=after,
    )


def _labels(member: str, column: Column, charset: str) -> tuple[bytes, ...]:
    return tuple(_encoded(member, column, label, charset) for label in labels_of(column))


def _encoded(member: str, column: Column, label: str, charset: str) -> bytes:
    try:
        return encode_label(label, charset)
    except BinlogError as error:
        raise PlanError(f"{member}: column {column.name}: {error}") from error


def charset_change(
    member: str, column: Column, target: Column, text: str
) -> tuple[str, str] | None:
    """Return the codecs, from and to, to convert a column's text; None if its bytes are kept.

    Raises PlanError.
    """
    charset = "utf8mb4" if text == "json" else column.charset
    if not charset or not target.charset or charset == target.charset:
        return None
    try:
        source_codec, target_codec = codec(charset), codec(target.charset)
    except BinlogError as error:
        raise PlanError(f"{member}: column {column.name}: {error}") from error
    return None if source_codec == target_codec else (source_codec, target_codec)


def target_column(column: Column, shard: Column | None = None) -> TargetColumn:
    """Return a column of a table for statements that write or compare it.

    ``shard``: the shard's column that has its values.
    """
    literal = column.sql_type.literal
    charset = column.charset if literal in (Literal.TEXT, Literal.ENUM) else ""
    labels = labels_of(column)
    if literal is Literal.ENUM and "" in labels:
        return TargetColumn(
            column.name,
            literal,
            charset,
            unlabelled=encode_label(no_label(labels), charset),
            empty_label=labels.index("") + 1,
        )
    bytewise = shard is not None and compares_bytes(shard, column)
    collation = column.collation if literal is Literal.TEXT else ""
    return TargetColumn(column.name, literal, charset, bytewise=bytewise, collation=collation)


def no_label(labels: Sequence[str]) -> str:
    """Return a text that equals none of an ENUM's labels, by any collation."""
    return "0" * (max(map(len, labels), default=0) + 1)


class PlanCache:
    """The plans for the present targets; call `forget` if one of these changes.

    A target of thousands of shards would have as many plans, which differ only in the shard's name.
    The plans of hundreds of targets mostly differ only in the target's name. So equal plans are
    shared.
    """

    def __init__(self) -> None:
        self._made: dict[object, dict[tuple[int, TableName], TablePlan]] = {}

    def forget(self) -> None:
        """Drop all plans."""
        self._made.clear()

    def plan(
        self,
        member: Member,
        structure: Table,
        table_map: TableMap,
        target: Table,
        target_number: int,
        buckets: int,
        rules: MemberColumns,
    ) -> TablePlan:
        """Return the result of `plan_table`, for the first of the target's shards that are alike.

        Raises the errors of `plan_table`.
        """
        # The key has everything that plan_table uses, except for names.
        alike = (
            structure.columns,
            structure.keys,
            hidden_columns(structure),
            system_period(structure.create_sql),
            replace(table_map, schema="", table=""),
            target.columns,
            target.keys,
            keys_without_overlaps(target),
            *(
                value_clause(table, column.name)
                for table in (structure, target)
                for column in table.columns
                if column.generated
            ),
            held_keys(structure, target, rules),
            target.write_rules,
            *(
                found(target, written_columns(structure, target, rules))
                for found in (restated_columns, filled_columns)
            ),
            buckets,
            rules,
        )
        of_targets = self._made.setdefault(alike, {})
        name = TableName(target.schema, target.name)
        made = of_targets.get((target_number, name))
        if made is None:
            other = next(iter(of_targets.values()), None)
            if other is None:
                args = structure, table_map, target, target_number, buckets, rules
                made = plan_table(member, *args)
            else:
                table = replace(
                    other.target, number=target_number, schema=name.schema, table=name.table
                )
                made = replace(other, member=member, target=table)
            of_targets[target_number, name] = made
        return made


_MARIADB_LENGTHS = frozenset({4, 16})
"""Lengths of BINARY(n) for which a column may be of another type that table maps show as
BINARY(n)."""


def described_by_event(structure: Table, table_map: TableMap) -> bool:
    """Return whether an event has all metadata to read its rows, equal to the structure.

    This requires ``binlog_row_metadata=FULL``: names, signs, labels and collations. The metadata is
    incomplete if a value's meaning depends on more than that (generated columns, MariaDB's UUID and
    INET types, the older formats of times).
    """
    columns, names = structure.columns, table_map.optional.names
    return (
        names is not None
        and len(columns) == len(names) == len(table_map.types)
        and all(_told(column, table_map, place) for place, column in enumerate(columns))
    )


def _told(column: Column, table_map: TableMap, place: int) -> bool:
    optional, code = table_map.optional, table_map.types[place]
    if not optional.names or folded(optional.names[place]) != folded(column.name):
        return False
    stored, literal = BINLOG_TYPES[code], column.sql_type.literal
    if column.generated or literal is Literal.PARSED or stored.unlogged_fraction:
        return False
    if literal in (Literal.NUMBER, Literal.FLOAT, Literal.DOUBLE):
        return optional.unsigned is not None and optional.unsigned[place] is not None
    if column.base_type in ("enum", "set") and not (optional.labels and optional.labels[place]):
        return False
    length = binary_length(column)
    if length is not None and (length != table_map.metadata[place] or length in _MARIADB_LENGTHS):
        return False
    collation = optional.collations[place] if optional.collations else None
    if collation is None:
        # A JSON, or a type that is not text. All texts and binary strings have a charset.
        return not (column.charset or stored.character or stored.width is Width.NUMBER)
    return charset_of(collation) == _plain(column.charset)


def _plain(charset: str) -> str:
    return {"utf8": "utf8mb3", "binary": ""}.get(charset.lower(), charset.lower())
