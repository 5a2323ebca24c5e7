"""Statements that change nothing on one shard, and are items of the others."""

from __future__ import annotations

from replicator.sharding.items import GroupState, Item, MemberState
from replicator.sharding.pessimistic.lock import TargetLock
from replicator.watermark import Place

START = Place(0, 0)


def _lock() -> TargetLock[str, None]:
    lock: TargetLock[str, None] = TargetLock("t", ["a", "b"])
    for source in ("a", "b"):
        lock.start(source, GroupState(0, ((f"{source}1", MemberState(0, START)),)), START)
    return lock


def _item(member: str, text: str, place: int) -> Item[str, None]:
    return Item(text, (text,), member, Place(place, 0), None)


def test_it_opens_no_lock() -> None:
    lock = _lock()
    lock.groups["a"].idle("a1", "x", Place(1, 0))
    lock.look()
    assert lock.view() is None
    assert not lock.agreed


def test_the_others_do_not_wait_for_a_shard_that_is_so_already() -> None:
    lock = _lock()
    lock.groups["a"].idle("a1", "x", Place(1, 0))
    lock.groups["b"].ddl(_item("b1", "x", 5))
    assert lock.groups["a"].missing(lock.candidates("b")[0]) == ()
    resolution = lock.resolve({"a": START, "b": START})
    assert lock.groups["a"].members["a1"] == MemberState(1, START)
    assert resolution.version == 1


def test_they_wait_for_another_statement() -> None:
    lock = _lock()
    lock.groups["a"].idle("a1", "x", Place(1, 0))
    item = _item("b1", "y", 5)
    lock.groups["b"].ddl(item)
    assert not lock.agreed
    assert lock.groups["a"].missing(item) == ("a1",)
    lock.groups["a"].ddl(_item("a1", "y", 6))
    assert lock.agreed


def test_nor_do_they_for_one_that_shows_the_result() -> None:
    lock = _lock()
    lock.groups["b"].ddl(_item("b1", "x", 5))
    group = lock.groups["a"]
    assert group.unlooked("x", 1) == ["a1"]
    group.show("a1", "x", 1, shows=False)
    assert group.unlooked("x", 1) == []
    assert group.unlooked("x", 2) == ["a1"]
    assert not lock.agreed
    group.show("a1", "x", 1, shows=True)
    resolution = lock.resolve({"a": START, "b": START})
    assert group.members["a1"] == MemberState(1, START, optional=(1,))
    assert (resolution.cutovers["a"].shown, resolution.cutovers["b"].shown) == (True, False)


def test_a_shard_shows_no_more_what_its_own_statement_may_have_changed() -> None:
    lock = _lock()
    group = lock.groups["a"]
    group.show("a1", "x", 1, shows=True)
    group.ddl(_item("a1", "y", 3))
    lock.groups["b"].ddl(_item("b1", "x", 5))
    assert not lock.agreed
