"""Holding what a source's binlog says of prepared XA transactions against what the source has.

The rows of a transaction that is prepared are kept until its outcome is read. Where no outcome
comes any more, because it was not logged (``sql_log_bin=0``), or because an event lied, they would
be kept for ever. The source lists those that it has (XA RECOVER). One that it does not list has its
outcome before the end of the binlog that is asked for afterwards, or has none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from time import monotonic

import anyio.to_thread
import structlog

from actors.faults import FatalError, of_source
from replicator.binlog.connection.source_server import PreparedAtSource
from replicator.binlog.events.xa_events import Xid, are_alike
from replicator.binlog.positions.position import BinlogPosition
from replicator.binlog.segments.segment import Segment
from replicator.binlog.stream.binlog_stream import BinlogStream

LOOK_SECONDS = 60.0
"""Between two looks, while all are there."""
AGAIN_SECONDS = 15.0
"""Before the look that decides. A source logs a transaction before it lists it, and may wait for
its replicas in between (``rpl_semi_sync_source_timeout``: 10 s by default)."""


class PreparedCheck:
    """Asks a source, from time to time, which of the transactions known as prepared it has."""

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
        """Behind a segment of the stream, ask its source if it is time to.

        Raises FatalError for a transaction that was not there at two looks, and has no outcome
        before the end of the binlog at the first of them.
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
    """Those that are not listed by their source, by where they stand in its binlog."""
    return {
        at: xid
        for at, xid in known.items()
        if not any(are_alike(other, xid) or are_alike(xid, other) for other in listed)
    }


def lost_transactions(source: str, gone: dict[BinlogPosition, Xid], segment: Segment) -> FatalError:
    """The fault that a source has no longer what is prepared by its binlog."""
    names = ", ".join(f"{xid} (prepared at {at})" for at, xid in _in_order(gone.items()))
    return FatalError(
        "source.unreadable",
        "the binlog prepares XA transactions whose outcome it does not have, and which the source"
        f" does not have any more: {names}. They ended in a session that did not log"
        " (sql_log_bin=0) or in a crash of the source, or their outcome was lost in a failover",
        where=f"source {source}, after {segment.end}",
        scope=of_source(source),
        remedies=(
            "if the source has committed one of these transactions: copy its rows to the target"
            " by hand",
            "then write an end for each name to the binlog: at the source, prepare a transaction"
            " of the same name and roll it back (XA START name; any change of a table; XA END"
            " name; XA PREPARE name; XA ROLLBACK name), and `replicator resume`",
        ),
    )


def _in_order(
    gone: Iterable[tuple[BinlogPosition, Xid]],
) -> list[tuple[BinlogPosition, Xid]]:
    return sorted(gone, key=lambda one: one[0].key)
