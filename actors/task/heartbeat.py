"""The heartbeat of a task in its log: a line each minute, and hourly warnings for open locks."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime

import anyio
import structlog

from replicator.status import CopyStatus, LockStatus, TaskStatus, condition, largest_lag, now

PROGRESS_SECONDS = 60.0
"""Seconds between two lines."""

LOCK_HOURS = 1.0
"""Hours after which an open lock causes a warning, and between two warnings."""


class Heartbeat:
    """Logs the state of the task.

    `status` returns the status, and `clock` the time for the ages of locks.
    """

    def __init__(
        self, status: Callable[[], TaskStatus], clock: Callable[[], datetime] = now
    ) -> None:
        self._status = status
        self._clock = clock
        self._told: dict[tuple[str, str, str], int] = {}
        self._rows = 0
        self._at = time.monotonic()
        self._log = structlog.get_logger()

    async def keep(self) -> None:
        """Log every `PROGRESS_SECONDS`, until cancelled."""
        while True:
            await anyio.sleep(PROGRESS_SECONDS)
            self.beat()

    def beat(self) -> None:
        """Log the line of this minute, and warnings about locks."""
        status, at = self._status(), time.monotonic()
        writer, seconds = status.writer, at - self._at
        self._log.info(
            "task.progress",
            condition=condition(status),
            lag_seconds=largest_lag(status),
            rows_per_second=round((writer.rows - self._rows) / max(seconds, 0.001), 1),
            rows=writer.rows,
            queued_bytes=writer.queued_bytes,
            checkpoint_age_seconds=writer.checkpoint_age_seconds,
            locks=len(status.locks),
            blocked=len(status.blocked),
            copied=_copied(status.copy),
        )
        self._rows, self._at = status.writer.rows, at
        for lock in status.locks:
            self._log_lock(lock)
        self._told = {key: self._told.get(key, 0) for key in map(_statement, status.locks)}

    def _log_lock(self, lock: LockStatus) -> None:
        if lock.since is None:
            return
        hours = (self._clock() - lock.since).total_seconds() / 3600
        if int(hours / LOCK_HOURS) > self._told.get(_statement(lock), 0):
            self._told[_statement(lock)] = int(hours / LOCK_HOURS)
            self._log.warning(
                "lock.open-long",
                target=lock.target,
                lock=lock.id,
                state=lock.state,
                hours=round(hours, 1),
                rows_held=lock.rows_held,
                missing={s.source: list(s.missing) for s in lock.sources if s.missing},
                statement=lock.ddl,
                reason=lock.reason,
                remedies=list(lock.remedies),
            )


def _statement(lock: LockStatus) -> tuple[str, str, str]:
    """Return the identity of a lock's statement.

    Several open ones of a target share one lock id.
    """
    return lock.id, lock.shard, lock.ddl


def _copied(copy: CopyStatus | None) -> str:
    if copy is None or copy.state != "copying":
        return ""
    rows = f"{copy.rows} of about {copy.rows_expected}" if copy.rows_expected else f"{copy.rows}"
    return f"{copy.tables_done} of {copy.tables} shards, {rows} rows"
