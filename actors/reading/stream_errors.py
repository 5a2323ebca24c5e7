"""What becomes of an error that ends a source's stream: it is read again, or it is a fault."""

from __future__ import annotations

from collections.abc import Mapping

from actors.faults import FatalError
from actors.reading.source_faults import source_fault
from actors.reading.uncopied_members import UncopiedMemberError, uncopied_rows
from replicator.binlog.errors import BinlogError, DamagedStreamError, StreamLostError
from replicator.binlog.positions.gtid import GtidStart
from replicator.binlog.positions.position import SourcePosition
from replicator.mysql.names import TableName
from replicator.watermark import Place

Start = tuple[SourcePosition | GtidStart, Place | None]
"""From where a stream goes on, and up to which row event it was handed on already."""


class StreamErrors:
    """Those of one source, and where its stream was damaged last.

    ``by_gtid``: where another server answers, the place can be looked for there.
    """

    def __init__(self, source: str, *, by_gtid: bool) -> None:
        self._source = source
        self._by_gtid = by_gtid
        self._damaged: Start | None = None

    def of(
        self, error: BinlogError, start: Start, uncopied: Mapping[TableName, TableName]
    ) -> FatalError | StreamLostError:
        """What to raise for an error of a stream that goes on from ``start``.

        What was damaged on its way is sound when it is read again, so a damage is a lost stream at
        first. Behind the same place a second time, it is a fault. ``uncopied``: the table of an
        UncopiedMemberError, with its target.
        """
        if isinstance(error, DamagedStreamError) and self._damaged != start:
            self._damaged = start
            return StreamLostError(str(error))
        if isinstance(error, UncopiedMemberError):
            assert uncopied
            return uncopied_rows(self._source, uncopied, start[0])
        return source_fault(self._source, start[0], error, by_gtid=self._by_gtid)
