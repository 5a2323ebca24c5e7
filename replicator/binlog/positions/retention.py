"""How far a position is from both ends of a server's binlog: what is kept, and what comes after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replicator.binlog.positions.position import BinlogPosition


@dataclass(frozen=True, slots=True)
class BinlogFile:
    """One line of SHOW BINARY LOGS; ``size`` in bytes, of the last file: up to now."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Distance:
    """``files_behind`` and ``bytes_behind``: from the position to the end of the binlog.

    ``files_left``: files older than the position's own that the server still has.
    """

    files_behind: int
    bytes_behind: int
    files_left: int


def distance(position: BinlogPosition, files: Sequence[BinlogFile]) -> Distance | None:
    """Where a position stands among the files of its server; None where its file is purged."""
    older = [f for f in files if _sequence(f) < position.sequence]
    newer = [f for f in files if _sequence(f) > position.sequence]
    own = [f for f in files if _sequence(f) == position.sequence]
    if not own and newer:
        return None
    ahead = sum(f.size for f in newer) + sum(max(0, f.size - position.offset) for f in own)
    return Distance(len(newer), ahead, len(older))


def _sequence(file: BinlogFile) -> int:
    return BinlogPosition(file.name, 0).sequence
