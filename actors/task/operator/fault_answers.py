"""The operator's requests that a running task saves: overrides, structures, reconciliations."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import anyio
from attrs import define
from pymysql.err import MySQLError

from actors.control.protocol import Reply, Request
from actors.counting.task_counts import TaskCounts
from actors.errors.faults import DdlEvent, TaskParts, UnreadRows
from actors.task.operator import operator_commands, structure_commands
from actors.task.operator.blocked_parts import Block
from actors.task.operator.ends_reply import ends_reply
from actors.task.operator.reconcile_command import reconcile
from actors.task.operator.recopy_command import RecopyCommand
from actors.task.operator.relay_command import purge_relays
from actors.task.operator.retire_command import RetireCommand
from actors.task.operator.shard_report import shards_reply
from actors.task.wiring.wiring import RunningTask
from actors.validating.operator_answers import answer_validation
from config.models import Task
from replicator.downstream.fence import FencedError
from replicator.downstream.meta.lease import Lease, LeaseLostError
from replicator.mysql.connection.asyncio_connection import DatabaseUnavailableError
from replicator.status import TaskState, TaskStatus

# A request waits for a starting task: the number of checks, and the seconds between two.
START_LOOKS = 400
LOOK_SECONDS = 0.05

TAKEN = frozenset(
    {"binlog", "ends", "reconcile", "relay", "retire", "schema", "shards"}
    | {"unlock-ddl-lock", "validation"}
)
"""The commands that a task accepts without a change of its state."""


@define(eq=False)
class FaultAnswers:
    """Accepts the operator's requests.

    Attributes:
        running: returns the part that follows the sources, or did until the task paused.
        state: returns the state of the task.
        blocks: returns the blocks of the task and its parts.
        still: a lock that is held while a change for the next run is saved.
    """

    task: Task
    _lease: Lease
    _running: Callable[[], RunningTask | None]
    _state: Callable[[], TaskState]
    _blocks: Callable[[], Collection[Block]]
    _still: anyio.Lock
    _counts: TaskCounts

    async def take(self, request: Request) -> Reply:
        """Answer a request for one of the commands `TAKEN`."""
        if request.command == "ends":
            return await ends_reply(self.task, self._counts.retiring.done)
        if request.command == "shards":
            return shards_reply(self._running(), self._counts)
        if request.command == "retire":
            running = self._running() if self._state() == "running" else None
            return RetireCommand(running, self._counts).reply(request.arguments)
        if request.command == "relay":
            running = self._running() if self._state() == "running" else None
            return await purge_relays(running, request.arguments)
        takes = {
            "binlog": self._binlog,
            "schema": self._schema,
            "reconcile": self._reconcile,
            "unlock-ddl-lock": self._unlock,
            "validation": self._validation,
        }
        return await takes[request.command](request.arguments)

    async def recopy(
        self,
        arguments: Mapping[str, Any],
        now: Callable[[], TaskStatus],
        go_on_with: Callable[[TaskParts], None],
    ) -> Reply:
        """Answer `replicator recopy` without --truncate.

        ``now`` returns the present status; ``go_on_with`` releases parts.
        """
        # The operator may answer a fault with this command while the task starts again.
        for _ in range(START_LOOKS):
            if now().state != "starting":
                break
            await anyio.sleep(LOOK_SECONDS)
        try:
            async with self._still:
                command = RecopyCommand(self.task, self._lease, now, arguments)
                found = await command.take()
        except (FencedError, LeaseLostError) as error:
            return Reply(ok=False, error=f"nothing was saved: {error}")
        except (DatabaseUnavailableError, MySQLError) as error:
            return Reply(ok=False, error=f"a server that is needed for it can't be used: {error}")
        if found.released.targets or found.released.sources:
            go_on_with(found.released)
        self._counts.reconciling.changed()
        return found.reply

    async def _unlock(self, arguments: Mapping[str, Any]) -> Reply:
        running = self._running() if self._state() == "running" else None
        renames = [lock.id for lock in running.mover.open_locks()] if running else []
        coordination = running.coordination if running else None
        return await operator_commands.unlock(coordination, arguments, self.task.name, renames)

    async def _validation(self, arguments: Mapping[str, Any]) -> Reply:
        return await answer_validation(self.task, self._lease, self._counts.validation, arguments)

    async def _reconcile(self, arguments: Mapping[str, Any]) -> Reply:
        try:
            return await reconcile(
                self.task, self._lease, self._running(), self._counts.reconciling, arguments
            )
        except (FencedError, LeaseLostError) as error:
            return Reply(ok=False, error=f"nothing was saved: {error}")
        except (DatabaseUnavailableError, MySQLError) as error:
            return Reply(ok=False, error=f"the target can't be read or written to: {error}")

    async def _binlog(self, arguments: Mapping[str, Any]) -> Reply:
        try:
            if arguments.get("action") == "list":
                return await operator_commands.list_overrides(self.task, self._lease)
            return await operator_commands.give_override(
                self.task,
                self._lease,
                {block.about for block in self._blocks() if isinstance(block.about, DdlEvent)},
                lambda: running.overrides if (running := self._running()) else None,
                arguments,
            )
        except (FencedError, LeaseLostError) as error:
            return Reply(ok=False, error=f"nothing was saved: {error}")
        except (DatabaseUnavailableError, MySQLError) as error:
            return Reply(ok=False, error=f"the target can't be written to: {error}")

    async def _schema(self, arguments: Mapping[str, Any]) -> Reply:
        running = self._running()
        registry = running.registry if running else None
        try:
            if arguments.get("action") == "list":
                return await structure_commands.list_structures(
                    self.task,
                    self._lease,
                    registry,
                    unread_rows(self._blocks(), arguments),
                    arguments,
                )
            async with self._still:
                unread = unread_rows(self._blocks(), arguments)
                if self._state() != "paused" and unread is None:
                    return Reply(ok=False, error=f"the task is {self._state()}: pause it first")
                return await structure_commands.declare_structure(
                    self.task, self._lease, registry, unread, arguments
                )
        except (FencedError, LeaseLostError) as error:
            return Reply(ok=False, error=f"nothing was saved: {error}")
        except (DatabaseUnavailableError, MySQLError) as error:
            return Reply(ok=False, error=f"a server that is needed for it can't be used: {error}")


def unread_rows(blocks: Collection[Block], arguments: Mapping[str, Any]) -> UnreadRows | None:
    """Return the unreadable rows that block something, of the named shard if there is one.

    ``arguments`` are ``source`` and ``table``, empty for any. Return None if there are rows of
    several shards.
    """
    source, table = str(arguments.get("source") or ""), str(arguments.get("table") or "")
    # The rows that block the only target block the task as well.
    found = {
        (block.about.member, block.about.at): block.about
        for block in blocks
        if isinstance(block.about, UnreadRows)
        and source in ("", block.about.member.source)
        and table in ("", str(block.about.member.name))
    }
    return next(iter(found.values())) if len(found) == 1 else None
