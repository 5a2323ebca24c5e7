"""Detects that a server with the expected identity is another node of the same cluster.

The nodes of a Galera cluster can have the same `server_id`, and MariaDB has no `server_uuid`. Each
node has its own binlog with the same transactions. After a reset, a binlog can have the same GTIDs
again, but not at the same time. So the last transaction that was read identifies the cluster.
"""

from __future__ import annotations

from replicator.binlog.errors import AnchorGoneError, BinlogError
from replicator.binlog.events.anchor_event import FIRST_EVENT
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.stream.anchor_check import AnchorCheck
from replicator.binlog.stream.gtid_positions import Connect, first_new, walk_heads
from replicator.mysql.server.identity import AnchorEvent


def is_other_node(
    connect: Connect, end: BinlogPosition, *, anchor: AnchorEvent, executed: str
) -> bool:
    """Return whether the anchor event is not at its position, but its transaction is elsewhere.

    Args:
        executed: the GTID set at the saved position.

    Raises AnchorGoneError if the transaction is nowhere; also the errors of a connection. Blocks.
    """
    at = SourcePosition(BinlogPosition(anchor.file, anchor.offset))
    gone: AnchorGoneError | None = None
    try:
        if AnchorCheck(connect(at), anchor).run() or anchor.offset == FIRST_EVENT:
            return False
    except AnchorGoneError as error:
        if anchor.offset == FIRST_EVENT or not executed:
            raise
        gone = error
    if executed and _is_elsewhere(connect, end, anchor, executed):
        return True
    if gone is not None:
        raise gone
    return False


def _is_elsewhere(
    connect: Connect, end: BinlogPosition, anchor: AnchorEvent, executed: str
) -> bool:
    try:
        first = first_new(connect, end, executed)
        names = [name for name, _ in connect(SourcePosition(end)).binlogs()]
    except BinlogError:
        return False
    for file in reversed([name for name in names if BinlogPosition(name, 0).key <= first.key]):
        start, met = BinlogPosition(file, FIRST_EVENT), False
        for heads in walk_heads(connect(SourcePosition(start)), start):
            if heads.waiting:
                break
            if heads.is_event(anchor):
                return True
            before = heads.boundary.binlog.key < first.key
            met = met or before
            if not before and file != first.file:
                break
        if met:
            break
    return False
