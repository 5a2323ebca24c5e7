"""Positions in a source's binlog, and watermarks: how far its rows are on a target.

Both compare in the order of the events in the binlog. They are tuples, so they are sent to Spark
and saved in the meta tables without conversion.
"""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """The place of one event in a source's binlog.

    Attributes:
        transaction: the key (`replicator.binlog.positions.position.BinlogPosition.key`) of the
            position at which the transaction begins.
        ordinal: 0 for a statement; counts a transaction's row events of all tables from 1; -1 for
            the boundary before all of them (see `boundary`).
    """

    transaction: int
    ordinal: int


class Watermark(NamedTuple):
    """How far a source's rows for a target have been applied; compared lexicographically.

    ``version`` counts the DDL items executed before; the rest is a `Place`.
    """

    version: int
    transaction: int
    ordinal: int

    @property
    def place(self) -> Place:
        """Return the place of the last applied row event."""
        return Place(self.transaction, self.ordinal)


class Reached(NamedTuple):
    """A transaction boundary up to which rows are applied.

    Its key, the GTID set executed there in its text form, and an event that the binlog had by then,
    as the text of a `replicator.mysql.server.identity.AnchorEvent`. Unknown texts are empty.
    """

    key: int
    gtid: str
    anchor: str = ""

    def mark(self, watermark: Watermark) -> Mark:
        """Return the mark to save with a watermark that was moved by then."""
        return Mark(self.gtid_of(watermark), self.anchor)

    def gtid_of(self, watermark: Watermark) -> str:
        """Return the GTID set by which another server finds the place of a watermark moved by then.

        Empty if the watermark is inside the transaction after the boundary, which no set describes.
        """
        return self.gtid if watermark.transaction < self.key else ""


class Mark(NamedTuple):
    """The identification of a watermark's place: a `Reached` without its key.

    ``gtid`` is empty if the watermark is inside a transaction.
    """

    gtid: str = ""
    anchor: str = ""


NOTHING_APPLIED = Watermark(0, 0, 0)
"""Before every row."""


def boundary(transaction: int) -> Place:
    """Return the place before every event of the transaction that begins at this key."""
    return Place(transaction, -1)
