"""The position in a source's binlog that a checkpoint has saved."""

from __future__ import annotations

from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.downstream.meta.checkpoint import Checkpoint


def saved_position(checkpoint: Checkpoint) -> SourcePosition:
    """Return the position to continue from, with everything that was saved about it."""
    return SourcePosition(
        BinlogPosition(checkpoint.file, checkpoint.offset),
        checkpoint.gtid,
        checkpoint.anchor,
        tuple(map(BinlogPosition.parse, checkpoint.prepared)),
    )
