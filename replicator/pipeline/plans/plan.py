"""What an executor needs to know to turn the row events of one table into writes: plain data.

A plan is made on the driver from the structure of the member, its table map and the structure of
the target; it is hashable, so that executors can keep what they derive from it.
"""

from __future__ import annotations

from dataclasses import dataclass

from replicator.downstream.rows.target_columns import Literal, Restated, TargetColumn, TargetTable
from replicator.mysql.names import Member
from replicator.pipeline.plans.row_filter import RowFilter
from replicator.rows.values.column_format import ColumnFormat

__all__ = ["Literal", "TablePlan", "TargetColumn", "TargetTable"]


@dataclass(frozen=True, slots=True)
class TablePlan:
    """How the row events of one (member, version, table map) become writes to its target.

    ``columns`` are the columns of the row image in their order. ``written`` are the indexes of
    those that are written, and ``target_columns`` their counterparts, in the same order. ``key``
    are indexes into ``columns`` of the row key; empty means that the target has no usable key,
    and the whole row is the key and is counted. ``hashed`` are the indexes into ``columns`` that
    choose the bucket (empty: bucket 0), but for ``hash_cut`` bytes at the end of their fields;
    ``generated`` are columns that a row image may leave out.
    ``member`` is the shard. ``covers`` tells whether the
    target has no ordinary column beyond the written ones, which overwriting would reset. ``until``
    is the index of the column that tells until when a row was the present one, where the shard
    keeps its former rows. ``constants`` are the fields, the same in all rows, of columns that the
    target has besides the shard's; their indexes follow those of ``columns``. ``filtering``: the
    rules that rows are left out by, if there are any. ``restated``: columns of the target that are
    not written and that its server would set by itself when a row is updated, or that a shard
    without them would fill by the row's values, each with what an update writes into it.
    """

    target: TargetTable
    member: Member
    columns: tuple[ColumnFormat, ...]
    written: tuple[int, ...]
    target_columns: tuple[TargetColumn, ...]
    key: tuple[int, ...]
    hashed: tuple[int, ...]
    generated: frozenset[int] = frozenset()
    covers: bool = True
    until: int | None = None
    constants: tuple[bytes, ...] = ()
    filtering: RowFilter | None = None
    hash_cut: int = 0
    restated: tuple[tuple[str, Restated], ...] = ()

    @property
    def key_columns(self) -> tuple[TargetColumn, ...]:
        """The target's columns of the row key, in the order of ``key``; empty for whole rows."""
        return tuple(self.target_columns[self.written.index(index)] for index in self.key)
