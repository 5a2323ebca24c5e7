"""XA transactions that were prepared before a source's reading begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import structlog

from actors.reading.source_faults import source_fault
from replicator.binlog.errors import BinlogError
from replicator.binlog.events.xa_events import UnknownTransactionError
from replicator.binlog.positions.gtid import GtidStart
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.stream.binlog_stream import BinlogStream
from replicator.binlog.stream.prepared_search import PreparedSearch


class PreparedBefore:
    """Finds where they stand. ``make_stream`` makes a stream of the source, as `BinlogStream`."""

    def __init__(self, source: str, make_stream: Callable[..., BinlogStream]) -> None:
        self._source = source
        self._make_stream = make_stream
        self._search: PreparedSearch | None = None
        self._log = structlog.get_logger().bind(source=source)

    def find(
        self, start: SourcePosition | GtidStart, missing: UnknownTransactionError
    ) -> SourcePosition | GtidStart:
        """The start with the place of a transaction that is committed behind it.

        Blocking. Raises StreamLostError; FatalError where the place is not found.
        """
        self._search = PreparedSearch(self._make_stream, self._look_in)
        try:
            found = self._search.run(start, missing)
        except BinlogError as error:
            raise source_fault(self._source, start, error) from error
        if not found:
            raise source_fault(self._source, start, missing) from missing
        places = sorted({*start.prepared, *found}, key=lambda at: at.key)
        self._log.info("source.prepared-found", places=[str(at) for at in found])
        return replace(start, prepared=tuple(places))

    def close(self) -> None:
        """End a search, from any thread."""
        if self._search is not None:
            self._search.close()

    def tell_purged(self, places: Sequence[BinlogPosition]) -> None:
        """Warn of transactions whose files are gone."""
        if places:
            self._log.warning("source.prepared-purged", places=[str(at) for at in places])

    def _look_in(self, file: str) -> None:
        self._log.info("source.xa-search", file=file)
