"""The status of the sources of a running task.

The lag of a source is the age of its oldest row that is not on the target.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from datetime import UTC, datetime

from actors.counting.task_counts import SourceCounts, TaskCounts
from actors.task.operator.lock_report import binlog_distance
from actors.task.wiring.wiring import RunningTask
from replicator.relay_status import RelayStatus
from replicator.status import SourceStatus


def lag_of(running: RunningTask, source: str, counts: SourceCounts) -> float | None:
    """Return the lag of a source in seconds; None before the first read.

    It is the time by this host's clock minus the time of the event by the source's clock. It
    includes rows that are queued, held by a lock, or routed to a blocked target. For a source that
    is not read, it includes every row since its last event.
    """
    if source not in running.units:
        return max(0.0, time.time() - counts.read_until) if counts.read_until else None
    lag = running.units[source].reader.progress.lag()
    oldest = oldest_waiting(running, source)
    if not oldest:
        return lag
    return max(lag or 0.0, time.time() - oldest)


def oldest_waiting(running: RunningTask, source: str) -> int:
    """Return when the oldest row of a followed source that is not on the target was written.

    Such a row is queued, held by a lock, or routed to a blocked target. The result is 0 if there is
    none.
    """
    waiting = [
        running.writer.tracker(source).oldest,
        running.units[source].reader.held.oldest_row,
        *(lock.holding.get(source, 0) for lock in running.open_locks()),
    ]
    return min(filter(None, waiting), default=0)


def source_statuses(running: RunningTask, counts: TaskCounts) -> tuple[SourceStatus, ...]:
    """Return the status of each source."""
    every = sorted({*running.units, *running.stopped})
    return tuple(_source(running, source, counts.sources[source]) for source in every)


def _source(running: RunningTask, source: str, counts: SourceCounts) -> SourceStatus:
    told = _followed if source in running.units else _stopped
    return replace(
        told(running, source),
        lag_seconds=shown_lag(running, source, counts),
        rows=counts.rows,
        bytes=counts.bytes,
        reconnects=counts.reconnects,
        distance=binlog_distance(running, source),
        transactions=counts.applied.number,
        complete_until=_complete_until(running, source, counts),
        relay=_relay(running, source),
    )


def _relay(running: RunningTask, source: str) -> RelayStatus | None:
    relay = running.watch.relays.get(source)
    size = relay.size() if relay is not None else None
    if relay is None or size is None:
        return None
    need = running.watch.need(source)
    oldest = relay.oldest_needed(())
    held_by = need.waits_for if need is not None else ""
    return replace(size, needed=str(oldest or ""), held_by=held_by)


def _complete_until(running: RunningTask, source: str, counts: SourceCounts) -> datetime | None:
    """Return the time until which the target has all rows of a source, by the source's clock."""
    if source not in running.units or not counts.read_until:
        return None
    oldest = oldest_waiting(running, source)
    return datetime.fromtimestamp(min(counts.read_until, oldest or counts.read_until), UTC)


def _stopped(running: RunningTask, source: str) -> SourceStatus:
    stopped = running.stopped[source]
    return SourceStatus(
        source=source,
        state=f"reconnecting: {stopped.away}" if stopped.away else "blocked",
        saved_position=str(stopped.saved) if stopped.saved else "",
        complete_position=str(stopped.saved) if stopped.saved else "",
    )


def _followed(running: RunningTask, source: str) -> SourceStatus:
    progress = running.units[source].reader.progress
    applied = running.writer.applied(source)
    complete = running.writer.tracker(source).resume.position
    return SourceStatus(
        source=source,
        state=progress.state if not progress.error else f"{progress.state}: {progress.error}",
        position=str(progress.position.binlog) if progress.position else "",
        gtid=progress.position.gtid if progress.position else "",
        prepared=tuple(map(str, progress.position.prepared)) if progress.position else (),
        applied_position=str(applied.binlog) if applied else "",
        saved_position=running.writer.checkpoints.saved.get(source, ""),
        complete_position=str(complete.binlog) if complete else "",
        complete_gtid=complete.gtid if complete else "",
    )


def shown_lag(running: RunningTask, source: str, counts: SourceCounts) -> float | None:
    """Return `lag_of` in whole seconds."""
    lag = lag_of(running, source, counts)
    return None if lag is None else whole_seconds(lag)


def whole_seconds(lag: float) -> float:
    """Return a lag with the precision of a binlog's times, which are whole seconds.

    A fraction would only be that of this host's clock: it would rise from 0 to 1 every second.
    """
    return float(math.floor(lag))
