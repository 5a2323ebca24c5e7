"""Positions in a source's binlog, and watermarks, which are positions up to which rows are applied.

Both are tuples that compare in the order of the events in the binlog. Spark and the meta tables
take them without conversion.
"""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """The place of one event in a source's binlog.

    Attributes:
        transaction: the key (`replicator.binlog.positions.position.BinlogPosition.key`) of the
            position at which the transaction begins.
        ordinal: the number of a row event among the transaction's row events of all tables, from 1;
            0 for a statement; -1 for the boundary before all of them (see `boundary`).
    """

    transaction: int
    ordinal: int


class Watermark(NamedTuple):
    """How far a source's rows for a target have been applied; compared lexicographically.

    ``version`` counts the DDL items executed before; the other fields are those of a `Place`.
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

    It has the boundary's key, the GTID set that was executed at the boundary, and an event that the
    binlog had by then, as the text of a `replicator.mysql.server.identity.AnchorEvent`. Unknown
    texts are empty.
    """

    key: int
    gtid: str
    anchor: str = ""

    def mark(self, watermark: Watermark) -> Mark:
        """Return the mark to save with a watermark that has reached this boundary."""
        return Mark(self.gtid_of(watermark), self.anchor)

    def gtid_of(self, watermark: Watermark) -> str:
        """Return the GTID set by which another server finds the place of such a watermark.

        It is empty if the watermark is inside the transaction after the boundary, because no GTID
        set describes this place.
        """
        return self.gtid if watermark.transaction < self.key else ""


class Mark(NamedTuple):
    """What identifies a watermark's place on another server: a `Reached` without its key.

    ``gtid`` is empty if the watermark is inside a transaction.
    """

    gtid: str = ""
    anchor: str = ""


NOTHING_APPLIED = Watermark(0, 0, 0)
"""The watermark before every row."""


def boundary(transaction: int) -> Place:
    """Return the place before every event of the transaction that begins at this key."""
    return Place(transaction, -1)
