"""Noticing streams that wait where the source's binlog no longer goes on.

A binlog that is begun anew (RESET MASTER, RESET BINARY LOGS AND GTIDS) under an open stream leaves
it at the end of a file that is gone. MySQL goes on to report that place as if there were no more
(seen with 5.6; 9.7 does until the new file is longer), so nothing of the new binlog would come.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from replicator.binlog.positions.position import BinlogPosition


@dataclass(frozen=True, slots=True)
class IdleStream:
    """A stream that has all there is, as its source says.

    ``position``: where it stands; ``reports``: how often the source has said so; ``reopen`` opens
    it anew, which proves first that it is the binlog that was read before.
    """

    position: BinlogPosition
    reports: int
    reopen: Callable[[], None]


class IdleStreams:
    """What was seen of the sources' idle streams, each at the last look."""

    def __init__(self) -> None:
        self._elsewhere: dict[str, IdleStream] = {}

    def left_behind(
        self, source: str, idle: IdleStream | None, end: BinlogPosition
    ) -> IdleStream | None:
        """The stream, if it stays where it is although the binlog ends elsewhere.

        ``end`` was asked for after ``idle``. Once is nothing: what is new may be on its way. So the
        source must have reported the same place again since the last look that found this.
        """
        seen = self._elsewhere.pop(source, None)
        if idle is None or idle.position == end:
            return None
        if seen is None or seen.position != idle.position:
            self._elsewhere[source] = idle
            return None
        if seen.reports == idle.reports:
            self._elsewhere[source] = seen
            return None
        return idle
