"""How far the reader of a source is."""

from __future__ import annotations

import time
from dataclasses import dataclass

from replicator.binlog.position import SourcePosition


@dataclass(slots=True)
class ReaderProgress:
    """How far a reader is, for `status`. ``reports``: how often the source said that it is all."""

    state: str = "starting"
    position: SourcePosition | None = None
    timestamp: int = 0
    behind: bool = True
    reports: int = 0
    error: str = ""
    all_read_at: float = 0.0

    def lag(self) -> float | None:
        """Seconds between the newest event read and now, by both clocks; None before the first.

        0 once the source has reported that there is no more. When it is not read any longer, from
        then on, as the source may go on.
        """
        if not self.behind:
            return 0.0
        newest = max(self.timestamp, self.all_read_at)
        return max(0.0, time.time() - newest) if newest else None

    def leave(self, state: str, error: str = "") -> None:
        """Note that the source is not read for now."""
        if not self.behind:
            self.all_read_at = time.time()
        self.state, self.behind, self.error = state, True, error
