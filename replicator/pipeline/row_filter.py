"""Expression filters on decoded rows: which changes of a batch go on, and as what.

The values that expressions need are read by a decoder of their own, as they stand in the shard:
what is written may be in another charset, and need not hold all of these columns. Tables without a
rule have no part in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

from replicator.binlog.errors import BinlogError
from replicator.downstream.literals import NULL_FIELD
from replicator.mysql.names import TableName, folded
from replicator.pipeline.filter_columns import (
    ReadField,
    field_reader,
    filter_column,
    known_collation,
)
from replicator.routing.expression_evaluation import EvaluationError, Row, Value
from replicator.routing.expression_filter import (
    ExpressionFilters,
    Fate,
    ResolvedRules,
    RowRules,
)
from replicator.routing.expression_types import FilterColumn
from replicator.rows.columns import ColumnFormat
from replicator.rows.row_lines import Change, RowImages, RowsDecoder, compile_decoder
from replicator.schema.structure import Table


class FilterError(Exception):
    """A rule has no answer for a row: the server, too, would have an error."""


@dataclass(frozen=True, slots=True)
class RowFilter:
    """The rules of one shard, and how the values that they need are read from its row events.

    ``formats`` are those of all columns of the row image, as they stand in the shard; ``indexes``
    are the places of ``columns`` among them, ``types`` the first words of their types.
    ``generated`` and ``until`` as in `replicator.pipeline.plan.TablePlan`. ``keyed``: the target
    tells rows apart by a key.
    """

    rules: RowRules
    formats: tuple[ColumnFormat, ...]
    indexes: tuple[int, ...]
    columns: tuple[FilterColumn, ...]
    types: tuple[str, ...]
    generated: frozenset[int]
    until: int | None
    keyed: bool


def rules_for(
    filters: ExpressionFilters, name: TableName, structure: Table, *, mariadb: bool = False
) -> ResolvedRules | None:
    """The rules of a table of this name and structure; None for none. Raises ExpressionError.

    ``mariadb``: the shard is of a MariaDB, whose collations differ a little where they have the
    names of MySQL's.
    """

    def find(name: str) -> FilterColumn | None:
        column = structure.column(name)
        return filter_column(column, mariadb=mariadb) if column else None

    collation_of = partial(known_collation, mariadb=mariadb)
    return filters.resolved(name.schema, name.table, find, collation_of)


def row_filter(
    resolved: ResolvedRules,
    structure: Table,
    formats: tuple[ColumnFormat, ...],
    generated: frozenset[int],
    until: int | None,
    *,
    keyed: bool,
) -> RowFilter:
    """The filter of a shard whose row events have columns of these formats."""
    places = {folded(column.name): index for index, column in enumerate(structure.columns)}
    indexes = tuple(places[folded(column.name)] for column in resolved.columns)
    types = tuple(structure.columns[index].base_type for index in indexes)
    return RowFilter(
        resolved.rules, formats, indexes, resolved.columns, types, generated, until, keyed
    )


def passing(filtering: RowFilter, events: Sequence[bytes], images: RowImages) -> RowImages:
    """Those of the changes in ``events`` that pass; ``images`` is what they were decoded to.

    Raises FilterError, or BinlogError for values that can't be read.
    """
    decoder, readers = _compiled(filtering)
    values = decoder.decode(events)
    found = RowImages()
    rules = filtering.rules
    forgets = filtering.keyed and rules.leaves_updates_out
    rows = zip(values.change, values.before, values.after, strict=True)
    for index, (change, before, after) in enumerate(rows):
        try:
            if change == Change.INSERT:
                fate = rules.inserted(_values(readers, after))
            elif change == Change.DELETE:
                fate = rules.deleted(_values(readers, before))
            else:
                fate = rules.updated(_values(readers, before), _values(readers, after))
        except (EvaluationError, ValueError) as error:
            raise FilterError(str(error)) from error
        if fate is not Fate.NOTHING:
            _add(found, images, index, fate, forgets=forgets)
    return found


def _add(found: RowImages, images: RowImages, index: int, fate: Fate, *, forgets: bool) -> None:
    """``forgets``: the target may hold the row in another state than the one before the change."""
    gone, comes = fate is not Fate.INSERT, fate is not Fate.DELETE
    found.event.append(images.event[index])
    found.change.append(int(Change[fate.name]))
    found.before.append(images.before[index] if gone and not forgets else None)
    found.before_key.append(images.before_key[index] if gone else None)
    found.before_hash.append(images.before_hash[index] if gone else 0)
    found.after.append(images.after[index] if comes else None)
    found.after_key.append(images.after_key[index] if comes else None)
    found.after_hash.append(images.after_hash[index] if comes else 0)


def _values(readers: Sequence[ReadField], line: bytes | None) -> Row:
    if line is None:
        raise BinlogError("a change of a row without the row")
    fields = line.split(b"\t") if readers else ()
    values: list[Value] = []
    for read, field in zip(readers, fields, strict=True):
        values.append(None if field == NULL_FIELD else read(field))
    return values


@lru_cache(maxsize=4096)
def _compiled(filtering: RowFilter) -> tuple[RowsDecoder, tuple[ReadField, ...]]:
    decoder = compile_decoder(
        filtering.formats, filtering.indexes, (), (), filtering.generated, filtering.until
    )
    readers = tuple(map(field_reader, filtering.columns, filtering.types))
    return decoder, readers
