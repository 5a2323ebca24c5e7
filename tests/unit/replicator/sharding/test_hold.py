"""The rows that groups hold in memory: complete or given up, within a budget."""

from __future__ import annotations

from replicator.sharding.hold import HeldPart, HoldBudget, HoldBuffer


def buffer(budget: HoldBudget) -> HoldBuffer[str]:
    return HoldBuffer(budget, lambda one, two: one + two)


def add(held: HoldBuffer[str], version: int, rows: str, section: int = 0) -> None:
    held.add(version, HeldPart(rows, len(rows), len(rows), section))


def test_the_rows_of_a_version_come_in_their_order() -> None:
    held = buffer(HoldBudget())
    for version, rows in ((1, "a"), (2, "x"), (1, "b")):
        add(held, version, rows)
    assert (held.count_of(1), held.size_of(1), held.size) == (2, 2, 3)
    assert "".join(held.take(1)) == "ab"
    assert (held.count_of(1), held.size) == (0, 1)
    assert held.take(2) == ["x"]


def test_many_small_parts_become_few() -> None:
    held = buffer(HoldBudget())
    for _ in range(1000):
        add(held, 1, "r")
    parts = held.take(1)
    assert "".join(parts) == "r" * 1000
    assert len(parts) <= 10


def test_parts_of_two_sections_stay_apart() -> None:
    held = buffer(HoldBudget())
    for section, rows in ((0, "a"), (0, "b"), (1, "c"), (1, "d")):
        add(held, 1, rows, section)
    assert held.take(1) == ["ab", "cd"]


def test_the_largest_buffer_gives_up_its_newest_version() -> None:
    budget = HoldBudget(10)
    large, small = buffer(budget), buffer(budget)
    add(small, 1, "aaa")
    add(large, 1, "bb")
    add(large, 2, "cccc")
    add(large, 3, "dd")
    assert (small.count_of(1), large.count_of(1), large.count_of(2)) == (3, 2, 4)
    assert large.count_of(3) == 0
    # More of what is missing is no use; what comes before it is.
    add(large, 4, "e")
    assert large.count_of(4) == 0
    add(large, 1, "f")
    assert large.take(1) == ["bbf"]


def test_a_row_without_room_is_not_kept() -> None:
    held = buffer(HoldBudget(0))
    add(held, 1, "a")
    assert (held.count_of(1), held.has_lost(1), held.has_lost(0)) == (0, True, False)


def test_a_buffer_that_is_no_longer_counted_leaves_its_room() -> None:
    budget = HoldBudget(5)
    first = buffer(budget)
    add(first, 1, "aaaa")
    budget.remove(first)
    second = buffer(budget)
    add(second, 1, "bbbbb")
    assert second.count_of(1) == 5


def test_what_is_dropped_begins_with_the_oldest_version() -> None:
    held = buffer(HoldBudget())
    for version in (3, 2):
        add(held, version, "a")
    held.drop()
    assert held.has_lost(2)
    assert not held.has_lost(1)
    assert held.size == 0
