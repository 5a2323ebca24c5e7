"""Row events as columns: filled, dealt out, cut, and counted, against doing it one by one."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from replicator.binlog.events.table_map import OptionalMetadata, TableMap
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.segments.row_events import joined
from replicator.binlog.segments.segment import RouteSlot
from replicator.binlog.segments.segment_builder import RowColumns, SegmentBuilder, SegmentLimits
from replicator.binlog.segments.table_routes import KnownTables, RoutedTable, TableRoutes
from replicator.downstream.rows.target_columns import TargetTable
from replicator.mysql.column_types import ColumnType
from replicator.mysql.names import Member, TableName
from replicator.pipeline.apply.batch import Batch
from replicator.pipeline.plans.plan import TablePlan
from replicator.watermark import Place
from tests.support.streams.row_columns import (
    places,
    plan_list,
    planned_events,
    row_events,
    table_maps,
)


def routed(number: int, target: int) -> RoutedTable:
    table_map = TableMap("s", f"t{number}", (3,), (0,), (False,), OptionalMetadata())
    return RoutedTable(table_map, RouteSlot(target, number))


added = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 3), st.binary(max_size=40)))


@given(added, st.lists(st.sampled_from([7, 900, 7, 12]), min_size=5, max_size=5))
def test_each_target_gets_its_events_in_their_order(
    events: list[tuple[int, int, bytes]], targets: list[int]
) -> None:
    tables = [routed(number, target) for number, target in enumerate(targets)]
    columns = RowColumns()
    for _ in range(2):
        transaction = 0
        expected: dict[int, list[object]] = {}
        for ordinal, (table, step, event) in enumerate(events):
            transaction += step // 2
            columns.add(event, table, transaction, ordinal)
            of_target = expected.setdefault(targets[table], [])
            of_target.append((tables[table].table_map, (transaction, ordinal), event))
        found = {
            target: list(zip(table_maps(rows), places(rows), rows.split(), strict=True))
            for target, rows in columns.take(tables).items()
        }
        assert found == expected


@given(added)
def test_the_last_transaction_can_be_taken_back(events: list[tuple[int, int, bytes]]) -> None:
    columns = RowColumns()
    kept = []
    for number, (transaction, _, event) in enumerate(sorted(events)):
        columns.add(event, 0, transaction, number)
        kept.append((transaction, number))
    assert columns.discard(4) == sum(transaction == 4 for transaction, _ in kept)
    rows = columns.take([routed(0, 1)])
    assert [place for r in rows.values() for place in places(r)] == [p for p in kept if p[0] != 4]


def test_more_than_there_was_room_for() -> None:
    columns = RowColumns()
    events = [bytes([number % 256]) * (number % 700) for number in range(3000)]
    for number, event in enumerate(events):
        columns.add(event, 0, number, 1)
    (rows,) = columns.take([routed(0, 1)]).values()
    assert rows.split() == events
    columns.add(b"x" * (20 << 20), 0, 1, 1)
    (large,) = columns.take([routed(0, 1)]).values()
    columns.add(b"y" * 100, 0, 1, 1)
    assert large.split() == [b"x" * (20 << 20)]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4)), unique=True).map(sorted),
    st.integers(0, 6),
    st.integers(-1, 5),
)
def test_events_up_to_a_place(
    stands: Sequence[tuple[int, int]], transaction: int, ordinal: int
) -> None:
    table_map = routed(0, 1).table_map
    rows = row_events(
        [(0, table_map)] * len(stands), *zip(*stands, strict=True) if stands else ([], [])
    )
    place = Place(transaction, ordinal)
    count = rows.up_to(place)
    assert count == sum(stand <= place for stand in stands)
    assert places(rows.between(0, count)) + places(rows.between(count, len(rows))) == list(stands)


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 9), st.binary(max_size=9), st.booleans()), min_size=1),
        min_size=1,
    )
)
def test_tables_of_chosen_events_are_joined(
    parts: list[list[tuple[int, bytes, bool]]],
) -> None:
    tables, expected = [], []
    for events in parts:
        ordinals = range(len(events))
        kinds, data, chosen = zip(*events, strict=True)
        table = planned_events(kinds, ordinals, ordinals, data)
        some = table.where(np.array(chosen, np.bool_))
        if some is not None:
            assert some.data is table.data, "no byte is copied to choose events"
            tables.append(some)
            expected += [(kind, event) for kind, event, taken in events if taken]
    found = joined(tables)
    assert list(zip(found.kind.tolist(), found.split(), strict=True)) == expected
    assert found.size == len(found.data)


def test_a_task_is_sent_the_events_of_its_targets_only() -> None:
    shard = Member("a", TableName("s", "t"))
    plans = plan_list(
        cast(
            TablePlan,
            SimpleNamespace(target=TargetTable(target, "s", "t", 1, replace=True), member=shard),
        )
        for target in (7, 9, 7)
    )
    tables = tuple(
        planned_events([plan], [transaction], [1], [b"event %d" % plan])
        for plan, transaction in ((0, 1), (1, 2), (2, 3), (0, 4))
    )
    batch = Batch(plans, tables)
    assert batch.sizes == {7: 21, 9: 7}
    (sent,) = batch.of_targets({7}).tables
    assert sent.split() == [b"event 0", b"event 2", b"event 0"]
    (one,) = batch.of_targets({9}).tables
    assert one.data is tables[1].data, "what lies in one piece is sent from there"
    assert batch.tables is tables


def test_table_ids_are_found_whatever_else_there_is() -> None:
    known = KnownTables()
    ids = [
        *range(1000, 4000),
        *(number << 40 for number in range(1, 30)),
        *range(1 << 20, 1 << 21, 4096),
    ]
    for number, table_id in enumerate(ids):
        known.open(table_id.to_bytes(6, "little"), number, b"body %d" % number, 3 * number)
    rows = {int(row[0]): [int(part) for part in row[1:]] for row in known.ids if row[0] >= 0}
    assert {table_id: number for table_id, (number, _, _, _) in rows.items()} == {
        table_id: number for number, table_id in enumerate(ids)
    }
    for number, begin, size, statement in rows.values():
        assert statement == 3 * number
        assert known.bodies[begin : begin + size].tobytes() == b"body %d" % number
    known.forget_bodies()
    assert {int(row[3]) for row in known.ids} == {-1}
    assert {int(row[1]) for row in known.ids if row[0] >= 0} == set(range(len(ids)))


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
