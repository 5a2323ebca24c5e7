"""The status of a task, put together from what its actors know of themselves."""

from __future__ import annotations

import time
from collections import deque
from datetime import datetime

from actors.task.generation import Generation
from actors.task.lock_report import binlog_distance, lock_statuses
from actors.task.wiring import RunningTask
from actors.writing.batched_writer import TargetTotals
from replicator.status import (
    Fault,
    SourceStatus,
    TargetStatus,
    TaskState,
    TaskStatus,
    WriterStatus,
)

WINDOW = 5.0
"""Seconds that a rate is an average of."""


class RateMeter:
    """Rows per second of the writer and of each target, over the last `WINDOW` seconds."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, Generation, int, dict[int, int]]] = deque()

    def look(self, generation: Generation) -> None:
        """Note the counters of this moment."""
        if generation.running is None:
            return
        writer = generation.running.writer
        moment = time.monotonic()
        rows = {target: _rows(totals) for target, totals in writer.progress.totals.items()}
        if self._looks and self._looks[-1][1] is not generation:
            self._looks.clear()
        self._looks.append((moment, generation, writer.progress.rows, rows))
        while self._looks[0][0] < moment - WINDOW:
            self._looks.popleft()

    def writer(self) -> float:
        """Rows per second, of all targets."""
        if len(self._looks) < 2:
            return 0.0
        first, last = self._looks[0], self._looks[-1]
        return (last[2] - first[2]) / (last[0] - first[0])

    def target(self, number: int) -> float:
        """Rows per second written to a target."""
        if len(self._looks) < 2:
            return 0.0
        first, last = self._looks[0], self._looks[-1]
        return (last[3].get(number, 0) - first[3].get(number, 0)) / (last[0] - first[0])


def task_status(
    name: str,
    state: TaskState,
    since: datetime,
    pid: int,
    fault: Fault | None,
    generation: Generation | None,
    rates: RateMeter,
) -> TaskStatus:
    """The status of a task; ``generation`` is None before the first one."""
    copy = generation.copy.progress.status() if generation and generation.copy else None
    if generation is None or generation.running is None:
        return TaskStatus(task=name, state=state, since=since, pid=pid, error=fault, copy=copy)
    running = generation.running
    writer = running.writer
    progress = writer.progress
    return TaskStatus(
        task=name,
        state=state,
        since=since,
        pid=pid,
        error=fault,
        sources=tuple(_source(running, source) for source in running.units),
        targets=_targets(running, rates),
        writer=WriterStatus(
            state=writer.jobs.state,
            batches=progress.batches,
            rows=progress.rows,
            rows_per_second=round(rates.writer(), 1),
            last_batch_seconds=round(progress.last_batch_seconds, 3),
            queued_bytes=writer.queued_bytes,
            checkpoint_age_seconds=round(time.monotonic() - progress.saved_at, 1),
        ),
        locks=lock_statuses(name, running),
        copy=copy,
    )


def _source(running: RunningTask, source: str) -> SourceStatus:
    progress = running.units[source].reader.progress
    saved = running.writer.progress.saved.get(source, "")
    applied = running.writer.applied(source)
    lag = progress.lag()
    return SourceStatus(
        source=source,
        state=progress.state if not progress.error else f"{progress.state}: {progress.error}",
        position=str(progress.position.binlog) if progress.position else "",
        gtid=progress.position.gtid if progress.position else "",
        applied_position=str(applied.binlog) if applied else "",
        saved_position=saved,
        lag_seconds=None if lag is None else round(lag, 1),
        rows=progress.rows,
        bytes=progress.bytes,
        reconnects=progress.reconnects,
        distance=binlog_distance(running, source),
    )


def _targets(running: RunningTask, rates: RateMeter) -> tuple[TargetStatus, ...]:
    registry, writer = running.registry, running.writer
    views = [lock.view for lock in running.coordination.open_locks()]
    waiting = {view.target: "; ".join(view.item.statements) for view in views}
    found = []
    for number, name in registry.targets():
        if not name.table:
            continue
        totals = writer.progress.totals.get(number, TargetTotals())
        ddl = writer.ddl_running.get(number)
        versions = [
            unit.groups[number].version for unit in running.units.values() if number in unit.groups
        ]
        found.append(
            TargetStatus(
                target=str(name),
                members=len(registry.members_of(number)),
                version=max(versions, default=0),
                inserted=totals.inserted,
                overwritten=totals.overwritten,
                deleted=totals.deleted,
                missing=totals.missing,
                rows_per_second=round(rates.target(number), 1),
                ddl=ddl.effect.sql if ddl else waiting.get(str(name), ""),
            )
        )
    return tuple(found)


def _rows(totals: TargetTotals) -> int:
    return totals.inserted + totals.overwritten + totals.deleted
