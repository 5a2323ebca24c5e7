"""Detects streams that wait at a place that the source's binlog no longer has.

If a binlog is reset (RESET MASTER, RESET BINARY LOGS AND GTIDS) under an open stream, the stream
stays at the end of a file that no longer exists. MySQL still reports this place as the end of the
binlog (seen with 5.6; 9.7 does until the new file is longer), so no event of the new binlog would
arrive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from replicator.binlog.positions.position import BinlogPosition


@dataclass(frozen=True, slots=True)
class IdleStream:
    """A stream that has read everything, as its source reports.

    Attributes:
        position: the place at which it waits.
        reports: how often the source has reported it.
        reopen: connects again, which first checks that this is the binlog that was read before.
    """

    position: BinlogPosition
    reports: int
    reopen: Callable[[], None]


class IdleStreams:
    """The last known state of each source's idle stream."""

    def __init__(self) -> None:
        self._elsewhere: dict[str, IdleStream] = {}

    def left_behind(
        self, source: str, idle: IdleStream | None, end: BinlogPosition
    ) -> IdleStream | None:
        """Return the stream if it stays at a place other than the end of the binlog.

        ``end`` was read after ``idle``. A single difference has no meaning, because events may be
        on their way. So the source must have reported the same place again since the last check
        that found a difference.
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
