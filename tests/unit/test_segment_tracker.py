from __future__ import annotations

from dataclasses import replace

import pytest

from actors.messages import ChunkEnd, DdlItem, GroupSaved, Part
from actors.writing.segment_tracker import BookState, SourceBook
from replicator.binlog.position import BinlogPosition, Point, SourcePosition
from replicator.binlog.segment import RowEvents, Statement
from replicator.binlog.table_map import OptionalMetadata, TableMap
from replicator.ddl.recognise import recognise
from replicator.mysql.names import TableName
from replicator.schema.ddl_effects import Effect, EffectKind

TABLE_MAP = TableMap("s", "t", (3,), (0,), (False,), OptionalMetadata())


def position(offset: int) -> SourcePosition:
    return SourcePosition(BinlogPosition("bin.000001", offset))


def rows(*transactions: int) -> RowEvents:
    count = len(transactions)
    return RowEvents(
        [0] * count, [TABLE_MAP] * count, list(transactions), [1] * count, [b"event"] * count
    )


def end(chunk: int, *targets: int, size: int = 100) -> ChunkEnd:
    return ChunkEnd("a", 0, chunk, frozenset(targets), position(1000 + chunk), True, 7, size)


def part(chunk: int, target: int, *transactions: int, ddl: DdlItem | None = None) -> Part:
    found = rows(*transactions) if transactions else None
    return Part("a", 0, chunk, target, found, 0, ddl, GroupSaved(((target, 1),)) if ddl else None)


def item(target: int) -> DdlItem:
    statement = Statement("s", "alter table t add c int", 5, 7)
    effect = Effect(
        EffectKind.ALTER,
        TableName("s", "t"),
        TableName("m", "t"),
        "",
        recognise(statement.sql, default_schema="s"),
    )
    return DdlItem("a", target, 1, effect, statement)


@pytest.fixture
def book() -> SourceBook:
    return SourceBook("a", 0, BookState(position(4), {}), {})


def test_a_chunk_is_taken_only_when_all_its_parts_are_there(book: SourceBook) -> None:
    book.add_end(end(0, 1, 2))
    book.add_part(part(0, 1, 10))
    assert book.take(1000, ()) == []
    book.add_part(part(0, 2, 11))
    assert [chunk.number for chunk in book.take(1000, ())] == [0]
    assert book.take(1000, ()) == []


def test_a_part_may_come_before_the_end_of_its_chunk(book: SourceBook) -> None:
    book.add_part(part(0, 1, 10))
    assert book.take(1000, ()) == []
    book.add_end(end(0, 1))
    assert len(book.take(1000, ())) == 1


def test_a_whole_chunk_waits_for_the_one_before_it(book: SourceBook) -> None:
    book.add_end(end(0, 1))
    book.add_end(end(1))
    assert book.take(1000, ()) == []


def test_room_limits_a_batch_but_never_the_first_chunk(book: SourceBook) -> None:
    for number in range(3):
        book.add_end(end(number, 1))
        book.add_part(part(number, 1, 10 + number))
    assert [chunk.number for chunk in book.take(0, ())] == [0]
    assert [chunk.number for chunk in book.take(150, ())] == [1, 2]


def test_a_blocked_target_holds_its_chunk_and_those_behind_it(book: SourceBook) -> None:
    for number, target in enumerate((1, 2, 1)):
        book.add_end(end(number, target))
        book.add_part(part(number, target, 10 + number))
    assert [chunk.number for chunk in book.take(1000, {2})] == [0]
    assert book.take(1000, {2}) == []
    assert [chunk.number for chunk in book.take(1000, ())] == [1, 2]


def test_the_position_moves_in_order_and_only_over_finished_chunks(book: SourceBook) -> None:
    for number in range(2):
        book.add_end(end(number, 1))
        book.add_part(part(number, 1, 10 + number))
    first = book.take(0, ())
    second = book.take(0, ())
    book.applied(second)
    assert book.resume.position == position(4)
    book.applied(first)
    assert book.resume.position == position(1001)
    assert book.idle
    assert book.queued_bytes == 0


def test_a_barrier_comes_behind_its_rows_and_before_the_next_chunk(book: SourceBook) -> None:
    ddl = item(1)
    book.add_end(end(0, 1))
    book.add_part(part(0, 1, 10, ddl=ddl))
    book.add_end(end(1, 1))
    book.add_part(part(1, 1, 11))
    taken = book.take(1000, ())
    assert [chunk.number for chunk in taken] == [0]
    assert list(book.barriers()) == []
    book.applied(taken)
    assert list(book.barriers()) == [ddl]
    assert book.take(1000, ()) == []
    assert book.resume.position == position(4)
    book.executed(ddl)
    assert book.resume.position == position(1000)
    assert book.resume.groups == {1: GroupSaved(((1, 1),))}
    assert [chunk.number for chunk in book.take(1000, ())] == [1]


def test_a_renamed_member_ends_a_batch(book: SourceBook) -> None:
    for number in range(3):
        book.add_end(end(number, 1))
    book.add_part(part(0, 1, 10))
    book.add_part(replace(part(1, 1, 11), renamed=True))
    book.add_part(part(2, 1, 12))
    taken = book.take(1000, ())
    assert [chunk.number for chunk in taken] == [0, 1]
    book.applied(taken)
    assert [chunk.number for chunk in book.take(1000, ())] == [2]


def test_applied_rows_raise_the_floor_of_their_target(book: SourceBook) -> None:
    book.add_end(end(0, 1, 2))
    book.add_part(part(0, 1, 10, 12))
    book.add_part(part(0, 2))
    book.applied(book.take(1000, ()))
    assert book.floors == {1: Point(0, 12, 1)}


def test_a_part_that_comes_twice_is_a_bug(book: SourceBook) -> None:
    book.add_part(part(0, 1, 10))
    with pytest.raises(AssertionError):
        book.add_part(part(0, 1, 10))


def test_a_cut_transaction_that_was_put_back_is_taken_whole(book: SourceBook) -> None:
    for number, complete in enumerate([True, False, False]):
        book.add_end(replace(end(number, 1), complete=complete))
        book.add_part(part(number, 1, 10 + number))
    first = book.take(0, ())
    assert not book.cut_short(first)
    book.applied(first)
    cut = book.take(0, ())
    assert book.cut_short(cut)
    book.put_back(cut)
    assert book.take(1000, ()) == []
    assert book.idle
    for number in (3, 4):
        book.add_end(end(number, 1))
        book.add_part(part(number, 1, 10 + number))
    whole = book.take(0, ())
    assert [chunk.number for chunk in whole] == [1, 2, 3]
    assert not book.cut_short(whole)
    assert [chunk.number for chunk in book.take(0, ())] == [4]


def test_a_transaction_that_ends_without_rows_is_not_cut_short(book: SourceBook) -> None:
    book.add_end(replace(end(0, 1), complete=False))
    book.add_part(part(0, 1, 10))
    book.add_end(end(1))
    rows, nothing = book.take(1000, ())
    book.applied([nothing])
    assert not book.cut_short([rows])


def test_a_batch_that_was_put_back_may_be_in_some_buckets(book: SourceBook) -> None:
    book.add_end(replace(end(0, 1), complete=False))
    book.add_part(part(0, 1, 10))
    taken = book.take(1000, ())
    book.put_back(taken)
    assert (book.floors, book.furthest) == ({}, {1: Point(0, 10, 1)})
    again = book.renewed(1, BookState(position(4), {}), book.floors)
    assert again.furthest == {1: Point(0, 10, 1)}
    again.add_end(end(0, 1))
    again.add_part(part(0, 1, 10, 12))
    again.applied(again.take(1000, ()))
    assert again.furthest == again.floors == {1: Point(0, 12, 1)}
