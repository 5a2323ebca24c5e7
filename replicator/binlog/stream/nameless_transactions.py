"""Transactions without a GTID in a MySQL binlog, immediately before a position found by GTIDs.

A GTID set does not show whether these transactions were read. So a position found by a GTID set is
certain only if the transaction before it has a GTID.
"""

from __future__ import annotations

from collections.abc import Sequence

from replicator.binlog.errors import GtidModeError, WithoutGtidError
from replicator.binlog.events.anchor_event import FIRST_EVENT
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.stream.gtid_positions import Connect, walk_heads


def refuse_nameless(connect: Connect, end: BinlogPosition, *, at: BinlogPosition) -> None:
    """Raise WithoutGtidError if the last transaction before ``at`` has no GTID.

    Reads the file of ``at``, and earlier ones as long as they have no transactions. Blocks, and
    raises the errors of a connection.
    """
    nameless = nameless_before(connect, _files(connect, end), at)
    if nameless is not None:
        raise WithoutGtidError(
            f"The binlog has transactions without a GTID at {nameless}, right before {at}, where"
            " the GTIDs end that were read"
        )


def nameless_before(
    connect: Connect, files: Sequence[str], at: BinlogPosition
) -> BinlogPosition | None:
    """Return the position of the last transaction before ``at`` if it has no GTID."""
    for file in reversed([name for name in files if BinlogPosition(name, 0).key <= at.key]):
        last = _last_of(connect, file, at)
        if last is not None:
            begin, has_gtid = last
            return None if has_gtid else begin
    return None


def _last_of(connect: Connect, file: str, at: BinlogPosition) -> tuple[BinlogPosition, bool] | None:
    """Return the position of a file's last transaction before ``at``, and whether it has a GTID.

    Returns None if there is no transaction.
    """
    start = BinlogPosition(file, FIRST_EVENT)
    last: tuple[BinlogPosition, bool] | None = None
    try:
        for heads in walk_heads(connect(SourcePosition(start)), start):
            if heads.headless:
                last = start, False
            boundary = heads.boundary.binlog
            if heads.waiting or boundary.file != file or boundary.key >= at.key:
                break
            last = boundary, heads.gtid is not None
    except GtidModeError:
        # The server refuses to send the first transaction without a GTID.
        return start, False
    return last


def _files(connect: Connect, end: BinlogPosition) -> list[str]:
    return [name for name, _ in connect(SourcePosition(end)).binlogs()]
