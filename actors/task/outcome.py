"""The state of a task, the outcome of a run, and the most important of its errors."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pymysql.err
import structlog
from pymysql.err import MySQLError

from actors.control.protocol import ControlError
from actors.control.server import AlreadyRunningError
from actors.errors.faults import (
    FatalError,
    LostCommitsError,
    Recovery,
    SourceMovedError,
    TaskParts,
    TransientError,
)
from actors.errors.refusals import refusal
from actors.task.resources.finished_task import TaskFinishedError
from actors.task.resources.lease_keeper import lease_lost
from actors.task.startup.prechecks import PrecheckError
from replicator.downstream.fence import FencedError
from replicator.downstream.meta.lease import LeaseHeldError, LeaseLostError
from replicator.mysql.connection.asyncio_connection import DatabaseAddress, DatabaseUnavailableError
from replicator.pipeline.spark.java import JavaMissingError
from replicator.routing.routes import RouteError
from replicator.status import Fault, TaskState, now

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Phase:
    """The state of a task, the time when it began, and the reason.

    ``standby_for`` is the process whose end this one waits for.
    """

    state: TaskState
    since: datetime
    fault: Fault | None = None
    standby_for: str = ""


@dataclass(frozen=True, slots=True)
class Stop:
    """A permanent end: the operator has requested it, or all work is done."""


@dataclass(frozen=True, slots=True)
class Pause:
    """The end of a run at the operator's request."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The end of a run by a fault that the operator must resolve."""

    error: FatalError


@dataclass(frozen=True, slots=True)
class Retry:
    """The end of a run by an error that another run may not have.

    ``ran``: whether the actors, or the copy, had started before.
    """

    error: TransientError | DatabaseUnavailableError
    ran: bool

    @property
    def spark_lost(self) -> bool:
        """Return whether Spark must be restarted, too."""
        lost = isinstance(self.error, TransientError)
        return lost and not isinstance(self.error, LostCommitsError | SourceMovedError)


Outcome = Stop | Pause | Failed | Retry


def weightiest(group: BaseExceptionGroup[BaseException], target: DatabaseAddress) -> BaseException:
    """Return the most important error: unexpected, then fatal, then transient errors.

    Errors that can cause others come first: another process has the task, or the target has lost
    commits. Of equal errors, the one that blocks most comes first; the others will occur again.

    A server's own error is the target's, because the readers and the start translate errors of
    sources.
    """
    errors = [_translated(error, target) for error in _leaves(group)]
    for error in errors:
        if not isinstance(error, FatalError | TransientError | DatabaseUnavailableError):
            return error
    return min(errors, key=_rank)


def _rank(error: BaseException) -> int:
    match error:
        case FatalError(recovery=Recovery.NONE):
            return 0
        case LostCommitsError():
            return 1
        case FatalError(scope=None):
            return 2
        case FatalError(scope=TaskParts(targets=targets)) if not targets:
            return 3
        case FatalError():
            return 4
    return 5


def _translated(error: BaseException, target: DatabaseAddress) -> BaseException:
    match error:
        case MySQLError():
            return refusal(target, error, source=None)
        case LeaseLostError():
            return lease_lost(error)
        case FatalError(recovery=Recovery.FAILOVER, message=message):
            return SourceMovedError(message)
        case FencedError(mismatch=mismatch):
            return LostCommitsError(mismatch)
    return error


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error


def restart_fault(before: Fault | None, error: Exception, wait: float) -> Fault:
    """Return the fault that is shown while the next run waits for ``wait`` seconds.

    ``before`` is the fault reported before; None once a run has started. The new fault keeps the
    time of the first failure.
    """
    goes_on = before is not None and before.event == "task.restart"
    following = now() + timedelta(seconds=wait)
    remedies = (
        "fix the cause, or wait: the task goes on by itself as soon as it can;"
        f" next attempt at {following:%H:%M:%S} UTC",
    )
    since = before.since if before is not None and goes_on else now()
    where = f"server {server}" if (server := getattr(error, "server", "")) else ""
    return Fault("task.restart", str(error), where, remedies, since)


def remedies_of(error: BaseException, task: str, task_file: Path) -> tuple[str, ...]:
    """Return the remedies of an error that is not a fault; a fault has its own remedies."""
    name, file = shlex.quote(task), shlex.quote(str(task_file))
    match error:
        case PrecheckError():
            found = dict.fromkeys(way for result in error.failed for way in result.remedies)
            return (*found, f"`replicator check {file}` shows all findings")
        case AlreadyRunningError():
            return (
                f"if that process should run the task, do nothing: `replicator status {name}`"
                " shows it",
                f"`replicator stop {name}`, then start the task again",
            )
        case LeaseHeldError():
            return (
                f"`replicator stop {name}` on host {error.state.holder.host}, then start the task"
                " again",
                "where that host can't be reached: end the process, or take its access to the"
                " target away; the start waits until its lease has run out",
            )
        case TaskFinishedError():
            return error.remedies
        case JavaMissingError():
            return ("install Java, or set JAVA_HOME, then start the task again",)
        case RouteError():
            return ("correct `routes:` in the task file, then start the task again",)
        case ControlError():
            return ("fix what the error names, then start the task again",)
        case DatabaseUnavailableError() | pymysql.err.OperationalError():
            return (f"`replicator check {file}` shows which server can't be used, and why",)
    return ("report this unexpected error, with this record of the log",)


def report_lost(error: LostCommitsError) -> None:
    """Log which commits the target has lost."""
    lost = error.mismatch
    log.warning(
        "target.lost-commits",
        what=lost.what,
        expected=lost.expected,
        found=lost.found,
        target=lost.target,
        bucket=lost.bucket,
    )


_ENTERED: dict[TaskState, str] = {
    "starting": "task.starting",
    "running": "task.running",
    "stopping": "task.stopping",
    "stopped": "task.stopped",
}


def log_state(state: TaskState, reason: str) -> None:
    """Log that a task has entered a state; ``reason`` is why it pauses."""
    if state == "paused":
        log.info("task.paused", reason=reason)
    elif state == "pausing":
        log.info("task.pausing", reason=reason)
    else:
        log.info(_ENTERED[state])
