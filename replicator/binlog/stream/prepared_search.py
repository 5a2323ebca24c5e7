"""Looking back for the place where an XA transaction was prepared before reading began."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pymysql

from replicator.binlog.errors import StreamLostError
from replicator.binlog.events.xa_events import UnknownTransactionError
from replicator.binlog.parser.prepared_transactions import PreparedPlaces
from replicator.binlog.positions.gtid import GtidStart
from replicator.binlog.positions.position import FILE_HEADER, BinlogPosition, SourcePosition
from replicator.binlog.segments.segment import RouteSlot
from replicator.binlog.stream.binlog_stream import BinlogStream


class PreparedSearch:
    """Reads the binlog files one by one, from the newest to the oldest, each from its beginning.

    Whoever follows the binlog must have ended: the server takes one stream for each server id.
    ``make_stream`` makes a stream, as `BinlogStream`; ``look_in`` is called with each file's name.
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
        """The places to know besides those of ``start``, to go on from there; empty: not found.

        They are that of the transaction, and of others that are prepared at ``start`` as well.
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
                # The last one of this name has its outcome: older files have others of it.
                break
            until = beginning
        return ()

    def close(self) -> None:
        """End it, from any thread; a `run` under way raises StreamLostError."""
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
    """The route of tables of which no rows are wanted."""
    return None


def _before(
    start: SourcePosition | GtidStart, places: Iterable[BinlogPosition]
) -> list[BinlogPosition]:
    """Those before a start that is a place; behind it they are read again."""
    if isinstance(start, GtidStart):
        return []
    return [at for at in places if at.key < start.binlog.key]
