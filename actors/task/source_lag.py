"""How far a source is behind: the age of the oldest row of it that is not on the target."""

from __future__ import annotations

import time

from actors.counts import SourceCounts
from actors.task.wiring import RunningTask


def lag_of(running: RunningTask, source: str, counts: SourceCounts) -> float | None:
    """Seconds, by both clocks; None while nothing was read.

    Counted are rows that are queued, held by a lock, or of a blocked target; of a source that is
    not read for now all since it was.
    """
    if source not in running.units:
        return max(0.0, time.time() - counts.read_until) if counts.read_until else None
    reader = running.units[source].reader
    lag = reader.progress.lag()
    waiting = [
        running.writer.tracker(source).oldest,
        reader.held.oldest_row,
        *(lock.holding.get(source, 0) for lock in running.coordination.open_locks()),
    ]
    oldest = min(filter(None, waiting), default=0)
    if not oldest:
        return lag
    return max(lag or 0.0, time.time() - oldest)
