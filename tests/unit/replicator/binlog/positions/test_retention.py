"""Whether a server still has the events after a position, by its list of binlog files."""

from __future__ import annotations

from replicator.binlog.positions.position import BinlogFile, BinlogPosition, Distance, distance

FILES = [BinlogFile("bin.000009", 900), BinlogFile("bin.000010", 100), BinlogFile("bin.000011", 50)]


def test_from_the_middle_of_a_file() -> None:
    assert distance(BinlogPosition("bin.000010", 40), FILES) == Distance(1, 110, 1)


def test_in_the_oldest_and_in_the_newest_file() -> None:
    assert distance(BinlogPosition("bin.000009", 4), FILES) == Distance(2, 1046, 0)
    assert distance(BinlogPosition("bin.000011", 50), FILES) == Distance(0, 0, 2)


def test_a_file_that_is_purged() -> None:
    assert distance(BinlogPosition("bin.000008", 4), FILES) is None


def test_the_list_may_be_older_than_the_position() -> None:
    assert distance(BinlogPosition("bin.000012", 4), FILES) == Distance(0, 0, 3)
