"""Assembles the status of a task from the state of its actors."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime

import anyio

from actors.counting.task_counts import TargetCounts, TaskCounts
from actors.mailboxes.messages import DdlItem
from actors.task.generation import Generation
from actors.task.operator.blocked_parts import BlockedParts, blocked_statuses
from actors.task.operator.lock_report import differing_targets, lock_statuses
from actors.task.source_report import shown_lag, source_statuses
from actors.task.wiring.held_shards import held_statuses
from actors.task.wiring.wiring import RunningTask
from actors.validating.operator_answers import validation_status
from replicator.mysql.names import TableName
from replicator.status import (
    Fault,
    TargetStatus,
    TaskState,
    TaskStatus,
    Trend,
    WriterStatus,
)

WINDOW = 5.0
"""Seconds over which a rate is averaged."""

INTERVAL = 1.0
"""Seconds between two readings of the counters for rates."""


TREND_SECONDS = 5.0
"""Seconds between two points of the trend."""

TREND_POINTS = 60
"""Maximum number of points of the trend: five minutes."""


class RateMeter:
    """Rows per second of the writer and of each target, over the last `WINDOW` seconds.

    It also has the trend of the last minutes, which may include a start or a pause.
    """

    def __init__(self, counts: TaskCounts) -> None:
        self.counts = counts
        self._samples: deque[tuple[float, dict[TableName, int]]] = deque()
        self._trend: deque[tuple[float, float | None]] = deque(maxlen=TREND_POINTS)

    async def sample_regularly(self, lag: Callable[[], float | None]) -> None:
        """Read the counters every `INTERVAL` seconds, and the ``lag`` every `TREND_SECONDS`."""
        due = time.monotonic() + TREND_SECONDS
        while True:
            self.sample()
            if time.monotonic() >= due:
                due += TREND_SECONDS
                self._trend.append((round(self.writer(), 1), lag()))
            await anyio.sleep(INTERVAL)

    def trend(self) -> Trend:
        """Return the trend of the last minutes."""
        rates, lags = tuple(r for r, _ in self._trend), tuple(lag for _, lag in self._trend)
        return Trend(TREND_SECONDS, rates, lags)

    def sample(self) -> None:
        """Read the present counters."""
        moment = time.monotonic()
        rows = {name: target.written for name, target in self.counts.targets.items()}
        self._samples.append((moment, rows))
        while self._samples[0][0] < moment - WINDOW:
            self._samples.popleft()

    def writer(self) -> float:
        """Return the rows per second of all targets."""
        return sum(map(self.target, self.counts.targets))

    def target(self, name: TableName) -> float:
        """Return the rows per second written to a target."""
        if len(self._samples) < 2:
            return 0.0
        (began, before), (ended, after) = self._samples[0], self._samples[-1]
        return (after.get(name, 0) - before.get(name, 0)) / (ended - began)


def task_status(
    name: str,
    state: TaskState,
    since: datetime,
    pid: int,
    fault: Fault | None,
    parts: BlockedParts,
    generation: Generation | None,
    rates: RateMeter,
) -> TaskStatus:
    """Return the status of a task; ``generation`` is None before the first one."""
    counts = rates.counts
    copy = generation.copy.progress.status() if generation and generation.copy else None
    running = generation.running if generation else None
    return TaskStatus(
        task=name,
        state=state,
        since=since,
        pid=pid,
        error=fault,
        sources=source_statuses(running, counts) if running else (),
        targets=_targets(running, counts, rates) if running else (),
        writer=_writer(running, counts, rates),
        locks=lock_statuses(name, running) if running else (),
        held=held_statuses(running, parts.reason_of) if running else (),
        differing=differing_targets(running) if running else (),
        copy=copy,
        blocked=blocked_statuses(name, parts, running),
        validation=validation_status(counts.validation),
        trend=rates.trend(),
        unreadable=counts.unreadable.status(),
        retired=counts.retiring.status(),
        reconciling=tuple(counts.reconciling.entries.values()),
        rows_corrected=counts.reconciling.corrected,
        verified=tuple(counts.verified.values()),
        started=counts.started,
    )


def stalled_status(status: TaskStatus, trouble: str) -> TaskStatus:
    """Return the status with the reason of a stalled target, unless it already reports one.

    ``trouble`` is empty if the target is not stalled.
    """
    if not trouble:
        return status
    copy, writer = status.copy, status.writer
    if copy is not None and copy.state == "copying" and not copy.waiting:
        copy = replace(copy, waiting=trouble)
    if not writer.state.startswith("retrying"):
        writer = replace(writer, state=f"retrying: {trouble}")
    return replace(status, copy=copy, writer=writer)


def lag_of_all(generation: Generation | None, counts: TaskCounts) -> float | None:
    """Return the largest lag of all sources, in seconds; None if the lag of one is unknown."""
    running = generation.running if generation else None
    if running is None:
        return None
    lags = [shown_lag(running, s, counts.sources[s]) for s in {*running.units, *running.stopped}]
    known = [lag for lag in lags if lag is not None]
    return max(known) if known and len(known) == len(lags) else None


def _writer(running: RunningTask | None, counts: TaskCounts, rates: RateMeter) -> WriterStatus:
    """Return the status of the writer, with its counts even before it exists."""
    done = WriterStatus(
        batches=counts.batches, rows=counts.rows, rows_per_second=round(rates.writer(), 1)
    )
    if running is None:
        return done
    writer = running.writer
    return replace(
        done,
        state=_state(writer.jobs.state, writer.ddl.waiting.values()),
        last_batch_seconds=None
        if writer.last_batch_seconds is None
        else round(writer.last_batch_seconds, 3),
        queued_bytes=writer.queued_bytes,
        checkpoint_age_seconds=round(time.monotonic() - writer.checkpoints.saved_at, 1),
    )


def _state(jobs: str, waiting: Iterable[str]) -> str:
    """Return the writer's activity or, if it is idle, the reason why a schema change waits."""
    trouble = min(waiting, default="") if jobs == "idle" else ""
    return f"retrying: {trouble}" if trouble else jobs


def _targets(
    running: RunningTask, counts: TaskCounts, rates: RateMeter
) -> tuple[TargetStatus, ...]:
    registry, writer = running.registry, running.writer
    views = [lock.view for lock in running.open_locks()]
    waiting = {view.target: "; ".join(view.item.statements) for view in views}
    found = []
    for number, name in registry.targets():
        if not name.table:
            continue
        done = counts.targets.get(name, TargetCounts())
        ddl = writer.ddl_running.get(number)
        versions = [
            unit.groups[number].version for unit in running.units.values() if number in unit.groups
        ]
        found.append(
            TargetStatus(
                target=str(name),
                members=len(registry.members_of(number)),
                version=max(versions, default=0),
                inserted=done.inserted,
                overwritten=done.overwritten,
                deleted=done.deleted,
                missing=done.missing,
                rows_per_second=round(rates.target(name), 1),
                ddl=ddl.effect.sql if isinstance(ddl, DdlItem) else waiting.get(name, ""),
                filtered=done.filtered,
                bytes=done.bytes,
                transactions=done.transactions,
            )
        )
    return tuple(found)
