"""Prepared XA transactions: finds transactions older than a start, and detects lost ones.

The rows of a prepared transaction are kept until its outcome is read. If no outcome ever comes,
because it was not logged (``sql_log_bin=0``), or because an event was wrong, they would be kept
forever. The source lists its prepared transactions (XA RECOVER). If a transaction is not in the
list, its outcome is before the binlog's end, read after the list, or it has no outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from time import monotonic

import anyio.to_thread
import pymysql
import structlog

from actors.errors.faults import FatalError, fault
from actors.reading.source_faults import source_fault
from replicator.binlog.connection.xa_recover import PreparedAtSource
from replicator.binlog.errors import BinlogError, StreamLostError
from replicator.binlog.events.xa_events import UnknownTransactionError, Xid, are_alike
from replicator.binlog.parser.prepared_transactions import PreparedPlaces
from replicator.binlog.positions.gtid import GtidStart
from replicator.binlog.positions.position import FILE_HEADER, BinlogPosition, SourcePosition
from replicator.binlog.segments.segment import RouteSlot, Segment
from replicator.binlog.stream.binlog_stream import BinlogStream

LOOK_SECONDS = 60.0
"""Seconds between two checks, as long as all prepared transactions are listed."""
AGAIN_SECONDS = 15.0
"""Seconds before the check that decides.

A source logs a transaction before it lists the transaction, and may wait for its replicas in
between (``rpl_semi_sync_source_timeout``: 10 s by default).
"""


class PreparedCheck:
    """Asks a source periodically which of its known prepared transactions it still has."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._next = 0.0
        self._missing: dict[BinlogPosition, Xid] = {}
        self._end: BinlogPosition | None = None
        self._refused = False
        self._log = structlog.get_logger().bind(source=source)

    async def look(
        self, stream: BinlogStream, segment: Segment, limiter: anyio.CapacityLimiter
    ) -> None:
        """After a segment of the stream, ask its source if a check is due.

        Raises FatalError for a transaction that was missing at two checks, and has no outcome
        before the end that the binlog had at the first check.
        """
        if not segment.complete or not segment.end.prepared or self._refused:
            return
        waits = self._end is not None and segment.end.binlog.key < self._end.key
        if waits or monotonic() < self._next:
            return
        known = stream.prepared
        found = await anyio.to_thread.run_sync(
            stream.prepared_at_source, limiter=limiter, abandon_on_cancel=True
        )
        if found is not None:
            self._compare(known, found, segment)

    def _compare(
        self, known: dict[BinlogPosition, Xid], found: PreparedAtSource, segment: Segment
    ) -> None:
        if found.refused:
            self._refused = True
            self._log.warning("source.prepared-unchecked", reason=found.refused)
            return
        missing = missing_transactions(known, found.names)
        gone = {at: xid for at, xid in missing.items() if self._missing.get(at) == xid}
        if gone:
            raise lost_transactions(self._source, gone, segment)
        self._missing, self._end = missing, found.end if missing else None
        self._next = monotonic() + (AGAIN_SECONDS if missing else LOOK_SECONDS)


def missing_transactions(
    known: dict[BinlogPosition, Xid], listed: Collection[Xid]
) -> dict[BinlogPosition, Xid]:
    """Return the transactions that their source does not list, by place in its binlog."""
    return {
        at: xid
        for at, xid in known.items()
        if not any(are_alike(other, xid) or are_alike(xid, other) for other in listed)
    }


def lost_transactions(source: str, gone: dict[BinlogPosition, Xid], segment: Segment) -> FatalError:
    """Return the fault for a source that lost transactions that its binlog has prepared."""
    names = ", ".join(f"{xid} (prepared at {at})" for at, xid in _in_order(gone.items()))
    return fault(
        "source.unreadable", "lost-xa", source=source, place=segment.end, transactions=names
    )


def _in_order(
    gone: Iterable[tuple[BinlogPosition, Xid]],
) -> list[tuple[BinlogPosition, Xid]]:
    return sorted(gone, key=lambda one: one[0].key)


class PreparedLookup:
    """Finds the transactions that were prepared before the reading of a source began.

    ``make_stream`` makes a stream of the source, like `BinlogStream`.
    """

    def __init__(self, source: str, make_stream: Callable[..., BinlogStream]) -> None:
        self._source = source
        self._make_stream = make_stream
        self._search: PreparedSearch | None = None
        self._log = structlog.get_logger().bind(source=source)

    def find(
        self, start: SourcePosition | GtidStart, missing: UnknownTransactionError
    ) -> SourcePosition | GtidStart:
        """Return the start with the place of a transaction that is committed after it.

        This call blocks. Raises StreamLostError; FatalError if the place is not found.
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

    def log_purged(self, places: Sequence[BinlogPosition]) -> None:
        """Warn about transactions whose files are purged."""
        if places:
            self._log.warning("source.prepared-purged", places=[str(at) for at in places])

    def _look_in(self, file: str) -> None:
        self._log.info("source.xa-search", file=file)


class PreparedSearch:
    """Reads the binlog files one by one, from the newest to the oldest, each from its beginning.

    No other stream may be open, because the server accepts one stream for each server id.
    ``make_stream`` makes a stream, like `BinlogStream`; ``look_in`` is called with each file's
    name.
    """

    def __init__(
        self, make_stream: Callable[..., BinlogStream], look_in: Callable[[str], None]
    ) -> None:
        self._make_stream = make_stream
        self._look_in = look_in
        self._stream: BinlogStream | None = None
        self._closed = False

    def run(
        self, start: SourcePosition | GtidStart, missing: UnknownTransactionError
    ) -> tuple[BinlogPosition, ...]:
        """Return the places that ``start`` needs in addition to its own; empty if not found.

        They are the places of the transaction, and of others that are also prepared at ``start``.
        Raises BinlogError, StreamLostError.
        """
        end = missing.at
        until = end
        for name in self._files(end):
            beginning = BinlogPosition(name, FILE_HEADER)
            places = self._read(beginning, until, missing)
            if missing.xid in places.found:
                others = places.found.values() if name == end.file else ()
                return tuple(dict.fromkeys((places.found[missing.xid], *_before(start, others))))
            if places.met:
                # The last transaction of this name has its outcome; older files have earlier
                # transactions.
                break
            until = beginning
        return ()

    def close(self) -> None:
        """End the search, from any thread; a `run` in progress raises StreamLostError."""
        self._closed = True
        if self._stream is not None:
            self._stream.close()

    def _files(self, end: BinlogPosition) -> list[str]:
        self._stream = self._made(end, PreparedPlaces())
        try:
            names = [name for name, _ in self._stream.binlogs()]
        except (pymysql.MySQLError, OSError) as error:
            raise StreamLostError(f"The list of binlogs can't be read: {error}") from error
        finally:
            self._stream.close()
        return [name for name in reversed(names) if BinlogPosition(name, 0).key <= end.key]

    def _made(self, start: BinlogPosition, places: PreparedPlaces) -> BinlogStream:
        return self._make_stream(SourcePosition(start), route=_nowhere, places=places)

    def _read(
        self, beginning: BinlogPosition, until: BinlogPosition, missing: UnknownTransactionError
    ) -> PreparedPlaces:
        self._look_in(beginning.file)
        places = PreparedPlaces(missing.at.key, missing.xid)
        self._stream = stream = self._made(beginning, places)
        try:
            if self._closed:
                raise StreamLostError("The binlog stream is closed.")
            stream.open()
            while True:
                segment = stream.read_segment()
                passed = segment.complete and segment.end.binlog.key >= until.key
                if passed or segment.caught_up:
                    return places
        finally:
            stream.close()


def _nowhere(_schema: str, _table: str, _types: bytes) -> RouteSlot | None:
    return None


def _before(
    start: SourcePosition | GtidStart, places: Iterable[BinlogPosition]
) -> list[BinlogPosition]:
    """Return the places before a start position; places after it are read again."""
    if isinstance(start, GtidStart):
        return []
    return [at for at in places if at.key < start.binlog.key]
