"""Places in a source's binlog, and watermarks: up to where its rows are on a target.

Both compare as the events stand in the binlog. They are tuples, so they travel through Spark and
into the meta tables as they are.
"""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """The place of one event in a source's binlog.

    ``transaction`` is the key (`replicator.binlog.positions.position.BinlogPosition.key`) of the
    position at which the transaction begins. ``ordinal`` is 0 for a statement, counts a
    transaction's row events from 1, those of all tables, and is -1 for the boundary before all of
    them (see
    `boundary`).
    """

    transaction: int
    ordinal: int


class Watermark(NamedTuple):
    """Up to where a source's rows for a target have been applied; compared lexicographically.

    ``version`` counts the DDL items executed before; the rest is a `Place`.
    """

    version: int
    transaction: int
    ordinal: int

    @property
    def place(self) -> Place:
        """Where the last row event that was applied stands."""
        return Place(self.transaction, self.ordinal)


class Reached(NamedTuple):
    """A transaction boundary up to which rows are applied: its key, the GTID set executed there in
    its text form, and an event that the binlog had by then, as the text of a
    `replicator.mysql.server.identity.Anchor event`. Both texts are empty where that is not
    known."""

    key: int
    gtid: str
    anchor: str = ""

    def mark(self, watermark: Watermark) -> Mark:
        """What is saved with a watermark that was moved by then."""
        return Mark(self.gtid_of(watermark), self.anchor)

    def gtid_of(self, watermark: Watermark) -> str:
        """The set by which another server tells where a watermark stands that was moved by then.

        Empty where it stands inside the transaction behind the boundary: that has no such place.
        """
        return self.gtid if watermark.transaction < self.key else ""


class Mark(NamedTuple):
    """By what the place of a watermark is known: a `Reached` without its key.

    ``gtid`` is empty where the watermark stands inside a transaction.
    """

    gtid: str = ""
    anchor: str = ""


NOTHING_APPLIED = Watermark(0, 0, 0)
"""Before every row."""


def boundary(transaction: int) -> Place:
    """The place before every event of the transaction that begins at this key."""
    return Place(transaction, -1)
