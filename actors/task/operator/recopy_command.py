"""The operator's request to copy targets again while readers see all their rows.

The targets are reconciled. A source that is blocked by a fault is first restarted at the present
end of its binlog (`actors.task.startup.source_restart`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from attrs import define
from pymysql.err import MySQLError

from actors.comparing.comparing import planned_comparison
from actors.comparing.owners import TargetShards, shards_of_targets
from actors.comparing.task_progress import TaskProgress
from actors.control.protocol import Reply
from actors.errors.faults import TaskParts
from actors.setup.task_setup import address_of
from actors.task.operator.blocked_parts import recopy_wanted, shown
from actors.task.startup.check_scope import task_to_check
from config.models import Task
from replicator.checks.checked_task import TaskToCheck
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.chunks import CopyStore
from replicator.downstream.meta.lease import Lease
from replicator.downstream.meta.reconciliations import ReconciliationStore
from replicator.events.fault_catalogue import shared_text
from replicator.failpoints import Failpoint, reach
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.errors import error_text
from replicator.mysql.names import TableName
from replicator.pipeline.compare.compare_plan import ComparisonPlan
from replicator.pipeline.plans.planning import PlanError
from replicator.routing.routes import RouteError
from replicator.schema.structure.inspection import read_target
from replicator.status import TaskStatus


@dataclass(frozen=True, slots=True)
class Recopied:
    """The answer to a request, and the parts that are no longer blocked."""

    reply: Reply
    released: TaskParts = field(default_factory=TaskParts)


@define(eq=False)
class RecopyCommand:
    """A request to copy targets again without emptying them.

    ``now`` returns the task's present status; ``arguments``: as for `recopy_wanted`.
    """

    _task: Task
    _lease: Lease
    _now: Callable[[], TaskStatus]
    _arguments: Mapping[str, Any]

    async def take(self) -> Recopied:
        """Check that the rows can be made exact, and save the request.

        Raises FencedError, LeaseLostError, DatabaseUnavailableError or the target's error.
        """
        with closing(Connection(address_of(self._task.target_database))) as connection:
            schema, name = self._task.meta_schema, self._task.name
            meta = MetaStore(connection, schema, name, self._lease)
            status = self._now()
            known = await _shards_by_source(meta)
            faults = {p.name for p in status.blocked if p.kind == "source" and p.error}
            begun = faults & {str(s) for s in self._arguments.get("sources") or ()}
            try:
                targets = recopy_wanted(
                    status, self._task.task_mode, self._arguments, known, begun_again=begun
                )
            except ValueError as error:
                return Recopied(Reply(ok=False, error=str(error)))
            copies = await CopyStore(meta).copies()
            if left := sorted(s for s in begun if s not in copies or not copies[s].done):
                again = shared_text("copy_again")
                why = f"the full copy of {', '.join(left)} has not finished: {again}"
                return Recopied(Reply(ok=False, error=why))
            if why := await self._refused(targets, begun):
                return Recopied(Reply(ok=False, error=why))
            faulty = _faulty(targets, status)
            for source in sorted(begun):
                await meta.ask_to_begin_again(source)
            # The targets of restarted sources are queued when the task restarts them.
            others = [t for t in sorted(targets) if not known[t] & begun]
            safe = {target: known[target] for target in faulty}
            await ReconciliationStore(meta).queue(others, safe_sources=safe)
        # Meanwhile, another source may have blocked these targets because of rows that a restarted
        # source has deleted.
        faulty |= _faulty((t for t in targets if known[t] & begun), self._now())
        reach(Failpoint.RECOPY_ASKED)
        body = {"targets": [shown(target) for target in sorted(targets)]}
        return Recopied(Reply(ok=True, body=body), TaskParts(frozenset(faulty), frozenset(begun)))

    async def _refused(self, targets: Collection[TableName], begun: Collection[str]) -> str:
        """Return why a reconciliation can't make the rows of the targets exact; empty if it can."""
        progress = TaskProgress(self._task, self._now)
        try:
            found = await task_to_check(self._task)
            shards = await shards_of_targets(found, progress, begun)
        except RouteError as error:
            return str(error)
        # Include the targets of new shards of the restarted sources.
        wanted = {
            name
            for name, members in shards.items()
            if name in targets or any(s.member.source in begun for s in members.roster.shards)
        }
        for name in sorted(wanted):
            plan = partial(planned_comparison, progress, found, name, shards[name])
            if why := await _inexact(found, name, shards[name], plan):
                return f"{shown(name)} can't be made exact without emptying it: {why}"
        return ""


def _faulty(targets: Iterable[TableName], status: TaskStatus) -> set[TableName]:
    blocked = {part.name for part in status.blocked if part.kind == "target" and part.error}
    return {target for target in targets if shown(target) in blocked}


_Plan = Callable[[], Awaitable[ComparisonPlan | None]]


async def _inexact(found: TaskToCheck, name: TableName, members: TargetShards, plan: _Plan) -> str:
    if members.unread:
        return members.unread
    with closing(Connection(found.target.address)) as connection:
        target = await read_target(connection, name)
    if not members.roster.shards:
        dropped = "none of its shards exists any more: if its rows may go, drop it"
        return dropped if target is not None else ""
    if target is None:
        return "it does not exist: create it with the structure of its shards"
    if members.loaded:
        return (
            "it had rows before the task wrote the first one, so a row that no shard has may be"
            " one of these"
        )
    if why := members.left_out:
        return why
    alone = members.alone(target)
    if alone.kept == "retired":
        gone = ", ".join(str(shard) for shard in members.retired)
        return (
            f"it may have rows of shards that do not exist any more ({gone}), and nothing"
            " distinguishes them from rows that other shards have deleted"
        )
    if alone.kept:
        return "it is not known which shards its rows can be of"
    try:
        comparison = await plan()
    except PlanError as error:
        return str(error)
    except MySQLError as error:
        return error_text(error)
    if comparison is None:
        return ""
    differences = [f"{o.column}: {o.why}" for o in comparison.left_out if not o.harmless]
    return "; ".join([*comparison.structure.unfit, *differences])


async def _shards_by_source(meta: MetaStore) -> dict[TableName, set[str]]:
    known: dict[TableName, set[str]] = {}
    for source in await meta.sources():
        for target in (await meta.destinations(source)).values():
            known.setdefault(target, set()).add(source)
    return known
