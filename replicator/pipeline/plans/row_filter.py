"""Applies expression filters to decoded rows: decides which changes of a batch pass, and how.

The decoder keeps the bytes of the columns that expressions need. They are read in the shard's
format: the written values may be in another charset, and need not have all of these columns. Tables
without a filter are not affected.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from replicator.kernels.compiled import Integers
from replicator.mysql.names import TableName, folded
from replicator.pipeline.plans.filter_columns import (
    ReadField,
    field_reader,
    filter_column,
    known_collation,
)
from replicator.routing.expression.evaluation import EvaluationError, Row, Value
from replicator.routing.expression.expression_filter import (
    ExpressionFilters,
    Fate,
    ResolvedRules,
    RowFates,
    RowRules,
)
from replicator.routing.expression.types import FilterColumn
from replicator.rows.decoder.lines import Lines, joined, lines_of
from replicator.rows.decoder.row_block import UNKNOWN_LINE, RawColumn, RowBlock
from replicator.rows.values.column_format import ColumnFormat
from replicator.rows.values.fields import Read
from replicator.rows.values.value_readers import column_reader
from replicator.schema.structure.structure import Table


class FilterError(Exception):
    """A filter has no result for a row: the server, too, would return an error."""


@dataclass(frozen=True, slots=True)
class RowFilter:
    """The filters of one shard, and how their values are read from its row events.

    Attributes:
        names: the names of the filters.
        indexes: the indexes of ``columns`` in the row image.
        layouts: the formats of their values in the image.
        types: the first words of their types.
        keyed: whether the target identifies rows by a key.
    """

    rules: RowRules
    names: tuple[str, ...]
    indexes: tuple[int, ...]
    columns: tuple[FilterColumn, ...]
    layouts: tuple[ColumnFormat, ...]
    types: tuple[str, ...]
    keyed: bool


def rules_for(
    filters: ExpressionFilters,
    name: TableName,
    structure: Table,
    *,
    mariadb: bool = False,
    doubtful: Set[str] = frozenset(),
) -> ResolvedRules | None:
    """Return the filters of a table of this name and structure, if any. Raises ExpressionError.

    Args:
        mariadb: whether the shard is on a MariaDB server, whose collations differ a little from
            MySQL's of the same names.
        doubtful: the columns whose collation is uncertain.
    """

    def find(name: str) -> FilterColumn | None:
        column = structure.column(name)
        if column is None:
            return None
        return filter_column(column, mariadb=mariadb, doubtful=column.name in doubtful)

    collation_of = partial(known_collation, mariadb=mariadb)
    return filters.resolved(name.schema, name.table, find, collation_of)


def row_filter(
    resolved: ResolvedRules,
    structure: Table,
    formats: tuple[ColumnFormat, ...],
    *,
    keyed: bool,
) -> RowFilter:
    """Return the filter of a shard whose row events have columns of these formats."""
    places = {folded(column.name): index for index, column in enumerate(structure.columns)}
    indexes = tuple(places[folded(column.name)] for column in resolved.columns)
    types = tuple(structure.columns[index].base_type for index in indexes)
    layouts = tuple(formats[index] for index in indexes)
    return RowFilter(
        resolved.rules, resolved.names, indexes, resolved.columns, layouts, types, keyed
    )


def passing(filtering: RowFilter, block: RowBlock) -> RowBlock:
    """Return the rows that pass; ``block`` has the raw columns of the filter.

    Raises FilterError, or BinlogError for values that can't be read.
    """
    if not len(block.event):
        return block
    changes = np.where(
        block.before < 0, Fate.INSERT, np.where(block.after < 0, Fate.DELETE, Fate.UPDATE)
    )
    try:
        found = _fates(filtering, changes, block.raw_columns)
    except (EvaluationError, ValueError) as error:
        raise FilterError(str(error)) from error
    kept = found != Fate.NOTHING
    passed = replace(
        block,
        event=block.event[kept],
        before=np.where(found == Fate.INSERT, -1, block.before)[kept],
        after=np.where(found == Fate.DELETE, -1, block.after)[kept],
        raw_columns=(),
    )
    # The target's row may not be in the state from before the change.
    forgets = filtering.keyed and filtering.rules.leaves_updates_out
    return replace(passed, lines=_without(block.lines, block.before)) if forgets else passed


def _fates(filtering: RowFilter, changes: Integers, columns: Sequence[RawColumn]) -> Integers:
    """Return the `Fate` of each change, as its number.

    Args:
        changes: the changes in the shard, as numbers.
        columns: the values of all images of the changes; for an update, first the image before it.
    """
    counts = 1 + (changes == Fate.UPDATE)
    last = np.cumsum(counts) - 1
    first = last - counts + 1
    values = [
        _values(column, *readers)
        for column, readers in zip(columns, _readers(filtering), strict=True)
    ]
    rows: list[Row] = list(zip(*values, strict=True)) if values else [()] * int(counts.sum())
    before, after = (map(rows.__getitem__, places.tolist()) for places in (first, last))
    fates = map(RowFates(filtering.rules).of, changes.tolist(), before, after)
    return np.fromiter(fates, np.int64, count=len(changes))


def _values(column: RawColumn, read: Read, convert: ReadField) -> list[Value]:
    images = column.values()
    found = {
        image: None if image is None else convert(read(image, 0)[0])
        for image in dict.fromkeys(images)
    }
    return list(map(found.__getitem__, images))


def _without(lines: Lines, images: Integers) -> Lines:
    chosen = np.arange(len(lines))
    chosen[images[images >= 0]] = len(lines)
    return joined([lines, lines_of([UNKNOWN_LINE])]).take(chosen)


@lru_cache(maxsize=4096)
def _readers(filtering: RowFilter) -> tuple[tuple[Read, ReadField], ...]:
    return tuple(
        (column_reader(layout), field_reader(column, base_type))
        for column, layout, base_type in zip(
            filtering.columns, filtering.layouts, filtering.types, strict=True
        )
    )
