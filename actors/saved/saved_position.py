"""The position in a source's binlog that a checkpoint has."""

from __future__ import annotations

from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.downstream.meta.checkpoint import Checkpoint


def saved_position(checkpoint: Checkpoint) -> SourcePosition:
    """The position to continue from, with everything that was saved about it."""
    return SourcePosition(
        BinlogPosition(checkpoint.file, checkpoint.offset),
        checkpoint.gtid,
        checkpoint.anchor,
        tuple(map(BinlogPosition.parse, checkpoint.prepared)),
    )
