"""A changed task file for a running task: its permitted changes, and whether it was accepted.

The next generation starts with the changed file. Until it has accepted the rules, every failure
restores the former file, and the generation with the changed file saves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import structlog
from attrs import define, field

from actors.control.arguments import OnChangedRules
from actors.control.protocol import Reply
from actors.errors.faults import FatalError, Recovery, TaskParts, TransientError
from actors.setup.task_setup import address_of
from actors.task.outcome import Failed, Outcome, Retry
from actors.task.resources.unavailable_sources import UnavailableSources
from actors.task.startup.prechecks import PrecheckError, Prechecks
from config import load_task
from config.models import Task
from config.problems import TaskFileError
from replicator.mysql.connection.asyncio_connection import DatabaseUnavailableError

_FIXED = {
    "task_mode": "the saved state was written in this mode",
    "shard_mode": "open schema changes are counted by this mode",
    "meta_schema": "the saved state of the task is there",
    "spark": "Spark was started with it",
    "memory": "the processes were started with it",
    "limits": "the processes were started with it",
}
"""The keys that a running task can't change, each with the reason."""

_TARGET = "the saved state and the rows are on this server"

log = structlog.get_logger()


class ReloadRefusedError(Exception):
    """The running task can't use the changed file.

    ``remedies``: the operator's possible actions.
    """

    def __init__(self, message: str, remedies: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.remedies = remedies

    @property
    def reply(self) -> Reply:
        """The answer to the operator."""
        return Reply(ok=False, error=str(self), body={"remedies": list(self.remedies)})


@define(eq=False)
class Reload:
    """A changed task file while a generation tries it.

    Attributes:
        task: the task of the changed file.
        former: the task of the former file.
        blocked: the parts that were blocked by a fault before.
        on_changed_rules: the choice for rows that were written by other rules.
        begun: whether a generation has started with the changed file.
    """

    task: Task
    former: Task
    blocked: TaskParts
    on_changed_rules: OnChangedRules
    begun: bool = False
    reply: Reply | None = None
    _settled: anyio.Event = field(factory=anyio.Event, init=False)

    async def settled(self) -> Reply:
        """Wait for the answer to the operator, and return it."""
        await self._settled.wait()
        assert self.reply is not None
        return self.reply

    def accept(self) -> None:
        """Answer that the task uses the changed file."""
        if self.reply is None:
            log.info("task.reloaded", file=self.task.file)
            self._settle(Reply(ok=True))

    def refused(self, outcome: Outcome) -> bool:
        """Return whether a failed run restores the former file.

        In this case, answer the operator.
        """
        if not self.begun or self.reply is not None:
            return False
        match outcome:
            case Failed(error) if error.recovery is Recovery.NONE:
                return False
            case Failed(error) if error.scope is not None and not self._is_new(error.scope):
                return False
            case Failed(FatalError() as error):
                reason, remedies = error.message, error.remedies
            case Retry(error):
                reason, remedies = str(error), ("try it again",)
            case _:
                reason, remedies = "it was paused or stopped before", ()
        self.refuse(ReloadRefusedError(f"{reason} (the former file stays in use)", remedies))
        return True

    def refuse(self, error: ReloadRefusedError) -> None:
        """Answer that the former file stays in use."""
        if self.reply is None:
            log.warning("task.reload-refused", file=self.task.file, reason=str(error))
            self._settle(error.reply)

    def _settle(self, reply: Reply) -> None:
        self.reply = reply
        self._settled.set()

    def _is_new(self, scope: TaskParts) -> bool:
        return not (scope.targets <= self.blocked.targets and scope.sources <= self.blocked.sources)


async def changed_task(
    former: Task, arguments: Mapping[str, Any], environment: Mapping[str, str]
) -> Task:
    """Return the task of a changed file; ``environment`` has variables of the former file.

    Raises ReloadRefusedError.
    """
    path = Path(str(arguments.get("file") or former.file))
    given = {str(name): str(value) for name, value in (arguments.get("variables") or {}).items()}
    try:
        task = await anyio.to_thread.run_sync(load_task, path, {**environment, **given})
    except TaskFileError as error:
        raise ReloadRefusedError(str(error)) from error
    if task.name != former.name:
        raise ReloadRefusedError(f"{path} is the file of task {task.name}")
    # These settings belong to the start of a process, and its command line may have set them.
    task = task.model_copy(update={"metrics": former.metrics, "remove_meta": False})
    if reasons := fixed_changes(former, task):
        restart = f"`replicator stop {former.name}`, then `replicator run {path}`"
        raise ReloadRefusedError(
            f"a running task can't change {'; '.join(reasons)}",
            (f"restore these keys, or restart the task with the changed file: {restart}",),
        )
    return task


def fixed_changes(former: Task, task: Task) -> list[str]:
    """Return the changed keys that a running task can't change, each with the reason."""
    keys = Task.model_fields
    found = [
        f"{keys[name].alias or name.replace('_', '-')} ({why})"
        for name, why in _FIXED.items()
        if getattr(former, name) != getattr(task, name)
    ]
    before, now = former.target_database, task.target_database
    if (before.host, before.port) != (now.host, now.port):
        found.append(f"the address of target-database ({_TARGET})")
    return found


async def checked(task: Task, former: Task, checks: Prechecks, away: UnavailableSources) -> None:
    """Make the checks of a start. Raises ReloadRefusedError."""
    known = {instance.source_id for instance in former.mysql_instances}
    new = {instance.source_id for instance in task.mysql_instances} - known
    try:
        await checks.make(frozenset())
    except PrecheckError as error:
        remedies = dict.fromkeys(way for result in error.failed for way in result.remedies)
        raise ReloadRefusedError(str(error), tuple(remedies)) from error
    except FatalError as error:
        raise ReloadRefusedError(error.message, error.remedies) from error
    except (TransientError, DatabaseUnavailableError) as error:
        raise ReloadRefusedError(str(error), ("try it again",)) from error
    if lost := new & away.reasons.keys():
        reasons = "; ".join(f"source {source}: {away.reasons[source]}" for source in sorted(lost))
        raise ReloadRefusedError(f"a new source can't be reached: {reasons}")


def sources_of(task: Task) -> UnavailableSources:
    """Return an empty record of the unavailable sources of a task."""
    ids = (instance.source_id for instance in task.mysql_instances)
    return UnavailableSources({s: address_of(task.source(s).connection) for s in ids})
