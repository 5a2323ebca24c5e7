"""What a run knows of the watermarks of the buckets."""

from __future__ import annotations

from actors.writing.checkpoints import BucketWatermarks, buckets_of
from replicator.mysql.names import TableName
from replicator.watermark import NOTHING_APPLIED, Watermark

T = TableName("m", "t")
FIRST, SECOND = Watermark(0, 10, 1), Watermark(0, 20, 1)


def test_every_bucket_of_a_pair_is_named() -> None:
    assert buckets_of({("b", T), ("a", T)}, {T: 2}) == [
        ("a", T, 0),
        ("a", T, 1),
        ("b", T, 0),
        ("b", T, 1),
    ]


def test_buckets_without_a_watermark_are_made_once() -> None:
    marks = BucketWatermarks({("a", T, 0): FIRST})
    keys = [("a", T, 0), ("a", T, 1)]
    assert marks.missing(keys) == [("a", T, 1)]
    marks.opened([("a", T, 1)])
    assert marks.missing(keys) == []
    assert marks.of(keys) == {("a", T, 0): FIRST, ("a", T, 1): NOTHING_APPLIED}


def test_a_batch_expects_what_the_one_before_has_left() -> None:
    marks = BucketWatermarks({("a", T, 0): FIRST})
    marks.left(T, {("a", 0): SECOND})
    assert marks.of([("a", T, 0)]) == {("a", T, 0): SECOND}


def test_what_was_moved_since_it_was_verified_is_verified_again() -> None:
    marks = BucketWatermarks({("a", T, 0): FIRST})
    assert marks.moved == {}
    marks.left(T, {("a", 0): FIRST})
    looked_at = marks.moved
    marks.left(T, {("a", 0): SECOND})
    marks.verified(looked_at)
    assert marks.moved == {("a", T, 0): SECOND}
    marks.verified(marks.moved)
    assert marks.moved == {}


def test_buckets_that_a_target_has_no_more_are_closed() -> None:
    found = {("a", T, number): FIRST for number in range(4)}
    marks = BucketWatermarks({**found, ("b", T, 0): FIRST})
    marks.left(T, {("a", 2): SECOND})
    pairs = {("a", T), ("b", T)}
    assert marks.surplus(pairs, {T: 4}) == []
    surplus = marks.surplus(pairs, {T: 1})
    assert surplus == [("a", T, 1), ("a", T, 2), ("a", T, 3)]
    marks.closed(surplus)
    assert marks.surplus(pairs, {T: 1}) == []
    assert marks.missing([("a", T, 1)]) == [("a", T, 1)]
    assert marks.moved == {}
