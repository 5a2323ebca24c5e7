"""Segments are larger where their rows go to many targets, and as before when they don't."""

from __future__ import annotations

import numpy as np

from replicator.binlog.events.column_types import ColumnType
from replicator.binlog.events.table_map import OptionalMetadata, TableMap
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.segments.segment import RouteSlot
from replicator.binlog.segments.segment_builder import SegmentBuilder, SegmentLimits
from replicator.binlog.segments.table_routes import RoutedTable, TableRoutes

LIMITS = SegmentLimits(1000, 4000, target_events=10, max_events=40, widest=8)
END = SourcePosition(BinlogPosition("bin.000001", 4))


def routes(targets: int) -> TableRoutes:
    made = TableRoutes(lambda _schema, _table, _types: None)
    for number in range(targets):
        name = f"t{number}"
        table_map = TableMap("s", name, (ColumnType.LONG,), (0,), (True,), OptionalMetadata())
        made.tables.append(RoutedTable(table_map, RouteSlot(number, number)))
    return made


def fill(builder: SegmentBuilder, targets: int) -> None:
    for number in range(targets):
        builder.add(number, 1, number, memoryview(np.zeros(20, np.uint8).data))


def test_limits_grow_with_targets_up_to_the_widest() -> None:
    assert LIMITS.of_targets(1) is LIMITS
    assert LIMITS.of_targets(31) is LIMITS
    assert LIMITS.of_targets(32) == SegmentLimits(2000, 4000, 20, 40, widest=8)
    assert LIMITS.of_targets(96) == SegmentLimits(6000, 6000, 60, 60, widest=8)
    assert LIMITS.of_targets(10_000) == SegmentLimits(8000, 8000, 80, 80, widest=8)
    assert SegmentLimits().of_targets(10_000) == SegmentLimits()


def test_a_segment_is_as_large_as_the_targets_of_the_one_before_call_for() -> None:
    builder, tables = SegmentBuilder(LIMITS), routes(64)
    fill(builder, 64)
    builder.bytes = 1000
    assert builder.is_full()
    assert len(builder.take(END, tables, complete=True).rows) == 64
    fill(builder, 39)
    builder.bytes = 3999
    assert not builder.is_full()
    builder.bytes = 4000
    assert builder.is_full()
    fill(builder, 1)
    builder.take(END, tables, complete=True)
    # Of 39 targets: twice as large.
    builder.bytes = 1999
    assert not builder.is_full()
    fill(builder, 1)
    builder.take(END, tables, complete=True)
    builder.bytes = 1000
    assert builder.is_full()
