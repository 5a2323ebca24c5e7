from __future__ import annotations

from dataclasses import replace

import pytest

from actors.mailboxes.messages import DdlItem, GroupSaved, SegmentEnd, TargetSegment
from actors.writing.segment_tracker import SegmentTracker, SourceState
from replicator.binlog.events.table_map import OptionalMetadata, TableMap
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.segments.row_events import RowEvents
from replicator.binlog.segments.segment import Statement
from replicator.ddl.parser.statement_kinds import classify
from replicator.mysql.names import TableName
from replicator.schema.effects.ddl_effects import Effect, EffectKind
from replicator.watermark import Watermark
from tests.support.streams.row_columns import row_events

TABLE_MAP = TableMap("s", "t", (3,), (0,), (False,), OptionalMetadata())


def position(offset: int) -> SourcePosition:
    return SourcePosition(BinlogPosition("bin.000001", offset))


def rows(*transactions: int) -> RowEvents:
    count = len(transactions)
    return row_events([(0, TABLE_MAP)] * count, transactions, [1] * count)


def end(segment: int, *targets: int, size: int = 100) -> SegmentEnd:
    return SegmentEnd("a", 0, segment, frozenset(targets), position(1000 + segment), True, 7, size)


def part(
    segment: int, target: int, *transactions: int, ddl: DdlItem | None = None
) -> TargetSegment:
    found = rows(*transactions) if transactions else None
    saved = GroupSaved(((target, 1),)) if ddl else None
    return TargetSegment("a", 0, segment, target, found, ddl=ddl, saved=saved)


def item(target: int) -> DdlItem:
    statement = Statement("s", "alter table t add c int", 5, 7)
    effect = Effect(
        EffectKind.ALTER,
        TableName("s", "t"),
        TableName("m", "t"),
        "",
        classify(statement.sql, default_schema="s"),
    )
    return DdlItem("a", target, 1, effect, statement)


@pytest.fixture
def tracker() -> SegmentTracker:
    return SegmentTracker("a", 0, SourceState(position(4), {}), {})


def test_a_segment_is_taken_only_when_all_its_parts_are_there(tracker: SegmentTracker) -> None:
    tracker.add_end(end(0, 1, 2))
    tracker.add_part(part(0, 1, 10))
    assert tracker.take(1000, ()) == []
    tracker.add_part(part(0, 2, 11))
    assert [segment.number for segment in tracker.take(1000, ())] == [0]
    assert tracker.take(1000, ()) == []


def test_a_part_may_come_before_the_end_of_its_segment(tracker: SegmentTracker) -> None:
    tracker.add_part(part(0, 1, 10))
    assert tracker.take(1000, ()) == []
    tracker.add_end(end(0, 1))
    assert len(tracker.take(1000, ())) == 1


def test_a_whole_segment_waits_for_the_one_before_it(tracker: SegmentTracker) -> None:
    tracker.add_end(end(0, 1))
    tracker.add_end(end(1))
    assert tracker.take(1000, ()) == []


def test_room_limits_a_batch_but_never_the_first_segment(tracker: SegmentTracker) -> None:
    for number in range(3):
        tracker.add_end(end(number, 1))
        tracker.add_part(part(number, 1, 10 + number))
    assert [segment.number for segment in tracker.take(0, ())] == [0]
    assert [segment.number for segment in tracker.take(150, ())] == [1, 2]


def test_a_blocked_target_holds_its_segment_and_those_behind_it(tracker: SegmentTracker) -> None:
    for number, target in enumerate((1, 2, 1)):
        tracker.add_end(end(number, target))
        tracker.add_part(part(number, target, 10 + number))
    assert [segment.number for segment in tracker.take(1000, {2})] == [0]
    assert tracker.take(1000, {2}) == []
    assert [segment.number for segment in tracker.take(1000, ())] == [1, 2]


def test_the_position_moves_in_order_and_only_over_finished_segments(
    tracker: SegmentTracker,
) -> None:
    for number in range(2):
        tracker.add_end(end(number, 1))
        tracker.add_part(part(number, 1, 10 + number))
    first = tracker.take(0, ())
    second = tracker.take(0, ())
    tracker.applied(second)
    assert tracker.resume.position == position(4)
    tracker.applied(first)
    assert tracker.resume.position == position(1001)
    assert tracker.idle
    assert tracker.queued_bytes == 0


def test_a_barrier_comes_behind_its_rows_and_before_the_next_segment(
    tracker: SegmentTracker,
) -> None:
    ddl = item(1)
    tracker.add_end(end(0, 1))
    tracker.add_part(part(0, 1, 10, ddl=ddl))
    tracker.add_end(end(1, 1))
    tracker.add_part(part(1, 1, 11))
    taken = tracker.take(1000, ())
    assert [segment.number for segment in taken] == [0]
    assert list(tracker.barriers()) == []
    tracker.applied(taken)
    assert list(tracker.barriers()) == [ddl]
    assert tracker.take(1000, ()) == []
    assert tracker.resume.position == position(4)
    tracker.executed(ddl)
    assert tracker.resume.position == position(1000)
    assert tracker.resume.groups == {1: GroupSaved(((1, 1),))}
    assert [segment.number for segment in tracker.take(1000, ())] == [1]


def test_a_renamed_member_ends_a_batch(tracker: SegmentTracker) -> None:
    for number in range(3):
        tracker.add_end(end(number, 1))
    tracker.add_part(part(0, 1, 10))
    tracker.add_part(replace(part(1, 1, 11), renamed=True))
    tracker.add_part(part(2, 1, 12))
    taken = tracker.take(1000, ())
    assert [segment.number for segment in taken] == [0, 1]
    tracker.applied(taken)
    assert [segment.number for segment in tracker.take(1000, ())] == [2]


def test_applied_rows_raise_the_low_watermark_of_their_target(tracker: SegmentTracker) -> None:
    tracker.add_end(end(0, 1, 2))
    tracker.add_part(part(0, 1, 10, 12))
    tracker.add_part(part(0, 2))
    tracker.applied(tracker.take(1000, ()))
    assert tracker.low_watermarks == {1: Watermark(0, 12, 1)}


def test_a_part_that_comes_twice_is_a_bug(tracker: SegmentTracker) -> None:
    tracker.add_part(part(0, 1, 10))
    with pytest.raises(AssertionError):
        tracker.add_part(part(0, 1, 10))


def test_a_cut_transaction_that_was_put_back_is_taken_whole(tracker: SegmentTracker) -> None:
    for number, complete in enumerate([True, False, False]):
        tracker.add_end(replace(end(number, 1), complete=complete))
        tracker.add_part(part(number, 1, 10 + number))
    first = tracker.take(0, ())
    assert not tracker.cut_short(first)
    tracker.applied(first)
    cut = tracker.take(0, ())
    assert tracker.cut_short(cut)
    tracker.repair(cut)
    assert tracker.take(1000, ()) == []
    assert tracker.idle
    for number in (3, 4):
        tracker.add_end(end(number, 1))
        tracker.add_part(part(number, 1, 10 + number))
    whole = tracker.take(0, ())
    assert [segment.number for segment in whole] == [1, 2, 3]
    assert not tracker.cut_short(whole)
    assert [segment.number for segment in tracker.take(0, ())] == [4]


def test_a_transaction_that_ends_without_rows_is_not_cut_short(tracker: SegmentTracker) -> None:
    tracker.add_end(replace(end(0, 1), complete=False))
    tracker.add_part(part(0, 1, 10))
    tracker.add_end(end(1))
    rows, nothing = tracker.take(1000, ())
    tracker.applied([nothing])
    assert not tracker.cut_short([rows])


def test_a_batch_that_was_put_back_may_be_in_some_buckets(tracker: SegmentTracker) -> None:
    tracker.add_end(replace(end(0, 1), complete=False))
    tracker.add_part(part(0, 1, 10))
    taken = tracker.take(1000, ())
    tracker.repair(taken)
    assert (tracker.low_watermarks, tracker.high_watermarks) == ({}, {1: Watermark(0, 10, 1)})
    again = tracker.renewed(1, SourceState(position(4), {}), tracker.low_watermarks)
    assert again.high_watermarks == {1: Watermark(0, 10, 1)}
    again.add_end(end(0, 1))
    again.add_part(part(0, 1, 10, 12))
    again.applied(again.take(1000, ()))
    assert again.high_watermarks == again.low_watermarks == {1: Watermark(0, 12, 1)}


def test_the_oldest_change_that_is_not_on_the_target(tracker: SegmentTracker) -> None:
    assert tracker.oldest == 0
    ends = [replace(end(number, 1), timestamp=100 + number) for number in range(3)]
    tracker.add_end(replace(end(0), timestamp=50))
    assert tracker.oldest == 0, "there is nothing in it for a target"
    for number in range(3):
        tracker.add_end(replace(ends[number], segment=number + 1))
        tracker.add_part(part(number + 1, 1, 10 + number))
    assert tracker.oldest == 100
    tracker.applied(tracker.take(101, ()))
    assert tracker.oldest == 101
    tracker.applied(tracker.take(1000, ()))
    assert tracker.oldest == 0


def test_buckets_that_are_ahead_are_level_when_their_rows_are_applied_again() -> None:
    ahead = {1: Watermark(0, 10, 1), 2: Watermark(0, 500, 1)}
    found = SegmentTracker("a", 0, SourceState(position(4), {}), {}, high_watermarks=ahead)
    assert not found.is_level(1)
    assert found.is_level(3)
    found.add_end(end(0, 1))
    found.add_part(part(0, 1, 10))
    found.applied(found.take(1000, ()))
    assert found.is_level(1)
    assert found.is_level(2), "what was read again has no rows of it"
    assert found.low_watermarks[2] == ahead[2]


def test_a_held_target_is_not_level_though_everything_was_read_again() -> None:
    ahead = {1: Watermark(0, 10, 1), 2: Watermark(0, 10, 1)}
    start, held = SourceState(position(4), {}), {2}
    found = SegmentTracker(
        "a", 0, start, {}, high_watermarks=ahead, is_held=lambda target: target in held
    )
    found.add_end(end(0, 1))
    found.add_part(part(0, 1, 10))
    found.applied(found.take(1000, ()))
    assert found.is_level(1)
    assert not found.is_level(2), "its rows wait, and some buckets lack them"
    assert 2 not in found.low_watermarks
