"""The parts of a task that are blocked while the rest continues: reasons, times and remedies.

Only this process knows them. A new process finds a remaining fault again.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from actors.errors.faults import DdlEvent, FatalError, Recovery, TaskParts, UnreadRows
from actors.task.operator import operator_commands, structure_commands
from actors.task.operator.lock_report import binlog_distance
from actors.task.operator.remedy_commands import as_typed
from actors.task.wiring.wiring import RunningTask
from replicator.downstream.meta.held_shards import PAUSED
from replicator.mysql.names import TableName
from replicator.status import BlockedPart, Fault, HeldAtSource, PartKind, TaskStatus, now

_LISTED = 5
"""Maximum number of blocked parts that the reason of a pause names."""


@dataclass(frozen=True, slots=True)
class Block:
    """The reason why a part is blocked: a fault, or (None) a pause by the operator.

    Attributes:
        about: a statement that can be overridden, or rows that another structure may make readable.
        passing: whether nobody has to act, because the task tries the part again.
        retried: whether the task tries the part again, even if somebody has to act.
    """

    since: datetime
    fault: Fault | None = None
    about: DdlEvent | UnreadRows | None = None
    passing: bool = False
    retried: bool = False


class BlockedParts:
    """The blocked parts of a task."""

    def __init__(self) -> None:
        self.targets: dict[TableName, Block] = {}
        self.sources: dict[str, Block] = {}
        self._log = structlog.get_logger()

    @property
    def blocked(self) -> TaskParts:
        """All blocked parts."""
        return TaskParts(frozenset(self.targets), frozenset(self.sources))

    @property
    def blocks(self) -> Iterator[Block]:
        """The reasons of the blocks."""
        yield from self.targets.values()
        yield from self.sources.values()

    @property
    def failed(self) -> bool:
        """Whether a fault blocks a part until the operator acts."""
        return any(block.fault is not None and not block.passing for block in self.blocks)

    @property
    def faulty(self) -> TaskParts:
        """The parts that a fault blocks."""
        return TaskParts(
            frozenset(target for target, block in self.targets.items() if block.fault),
            frozenset(source for source, block in self.sources.items() if block.fault),
        )

    def reason_of(self, target: TableName) -> str:
        """Return why a target is blocked: its fault, or a pause by the operator."""
        block = self.targets.get(target) or self.targets.get(TableName(target.schema, ""))
        if block is None:
            return "a part that it is tied to is blocked"
        return f"{block.fault.event}: {block.fault.message}" if block.fault else PAUSED

    def add(self, parts: TaskParts, block: Block) -> bool:
        """Block parts; return False if all of them are blocked already."""
        new = TaskParts(parts.targets - self.targets.keys(), parts.sources - self.sources.keys())
        event = block.fault.event if block.fault else ""
        for target in sorted(new.targets):
            self.targets[target] = block
            self._log.warning("target.blocked", target=shown(target), fault=event)
        for source in sorted(new.sources):
            self.sources[source] = block
            self._log.warning("source.blocked", source=source, fault=event)
        return bool(new)

    def steer(
        self,
        command: str,
        arguments: Mapping[str, Any],
        targets: Collection[TableName],
        sources: Collection[str],
        *,
        begun: bool,
    ) -> None:
        """Pause or resume the parts that the operator names, of all ``targets`` and ``sources``.

        ``begun``: whether every source has a saved state. Raises ValueError.
        """
        parts = named_parts(arguments, {*self.targets, *targets}, sources)
        if command == "resume":
            self.release(self._blocked_ones(parts))
        elif command != "pause":
            raise ValueError(f"{command} is for the whole task")
        elif not begun:
            raise ValueError("the task has not begun with all sources yet: pause it as a whole")
        else:
            # A part that the task tries again must not resume by itself any more.
            for target in parts.targets & self.targets.keys():
                if self.targets[target].retried:
                    self.targets[target] = Block(now())
            for source in parts.sources & self.sources.keys():
                if self.sources[source].retried:
                    self.sources[source] = Block(now())
            self.add(parts, Block(now()))

    def _blocked_ones(self, parts: TaskParts) -> TaskParts:
        """Return the parts. Raises ValueError if one of them is not blocked."""
        going = [*map(shown, parts.targets - self.targets.keys())]
        going += parts.sources - self.sources.keys()
        if going:
            blocked = [*map(shown, self.targets), *self.sources]
            raise ValueError(
                f"not blocked: {', '.join(sorted(going))}. Blocked are:"
                f" {', '.join(blocked) or 'none'}"
            )
        return parts

    def release(self, parts: TaskParts) -> None:
        """Unblock these parts."""
        for target in sorted(parts.targets & self.targets.keys()):
            del self.targets[target]
            self._log.info("target.resumed", target=shown(target))
        for source in sorted(parts.sources & self.sources.keys()):
            del self.sources[source]
            self._log.info("source.resumed", source=source)

    def leaves(self, targets: Collection[TableName], sources: Collection[str]) -> bool:
        """Return whether any of the task's targets and sources continues."""
        blocked = self.blocked
        return not (
            set(sources) <= blocked.sources or (targets and set(targets) <= blocked.targets)
        )


def pause_reason(
    parts: BlockedParts,
    whole: Block | None,
    targets: Collection[TableName],
    sources: Collection[str],
    *,
    nothing_left: bool,
) -> str:
    """Return why a task pauses.

    Args:
        parts: its blocked parts.
        whole: the fault that ended the last run, if any.
        targets: all targets of the task.
        sources: all sources of the task.
        nothing_left: whether it pauses because all parts are blocked.
    """
    if nothing_left and not parts.leaves(targets, sources):
        blocked = parts.blocked
        if set(sources) <= blocked.sources:
            kind, blocks = "sources", {name: parts.sources[name] for name in sources}
        else:
            kind, blocks = "targets", {shown(name): parts.targets[name] for name in targets}
        listed = [
            f"{name} ({block.fault.event if block.fault else 'paused by the operator'})"
            for name, block in sorted(blocks.items())
        ]
        more = f" and {len(listed) - _LISTED} more" if len(listed) > _LISTED else ""
        return f"all {kind} of the task are blocked: {', '.join(listed[:_LISTED])}{more}"
    if whole is not None and whole.fault is not None:
        return f"the fault {whole.fault.event} concerns the whole task"
    return "the operator has paused the task"


def shown(target: TableName) -> str:
    """Return the name of a target, or of a database of targets, as the operator types it."""
    return str(target) if target.table else target.schema


def named_parts(
    arguments: Mapping[str, Any], targets: Iterable[TableName], sources: Iterable[str]
) -> TaskParts:
    """Return the parts that an operator names, among the possible ones. Raises ValueError.

    ``arguments`` has ``targets`` and ``sources``. The whole shown names are compared.
    """
    by_name = {shown(target): target for target in targets}
    known = set(sources)
    wanted = [str(name) for name in arguments.get("targets") or ()]
    of = [str(name) for name in arguments.get("sources") or ()]
    for kind, names, there in (("target", wanted, by_name.keys()), ("source", of, known)):
        for name in names:
            if name not in there:
                all_names = ", ".join(sorted(there)[:50]) or "none"
                raise ValueError(f"there is no such {kind}: {name}. There are: {all_names}")
    return TaskParts(frozenset(by_name[name] for name in wanted), frozenset(of))


def resume_command(task: str, parts: TaskParts | None) -> str:
    """Return the command that resumes parts of a task; None means the whole task."""
    words = ["replicator", "resume", task]
    if parts is not None:
        words += [w for target in sorted(parts.targets) for w in ("--target", shown(target))]
        words += [w for source in sorted(parts.sources) for w in ("--source", source)]
    return shlex.join(words)


def block_of(task: str, file: str, error: FatalError) -> Block:
    """Return a fault in the form that the status shows.

    Its remedies have commands that can be typed. `file` is the path of the task file.
    """
    answers: tuple[str, ...] = ()
    overrides: dict[str, str] = {}
    match error.about:
        case DdlEvent():
            answers = operator_commands.remedies_of(task, error.about)
            overrides = operator_commands.override_commands(task, error.about)
        case UnreadRows():
            answers = structure_commands.remedies_of(task, error.about)
    resume = f"`{resume_command(task, error.scope)}`"
    remedies = tuple(
        as_typed(
            way.replace("`replicator resume`", resume).replace(
                f"`{resume_command(task, None)}`", resume
            ),
            task,
            file,
            overrides,
        )
        for way in (*answers, *error.remedies)
    )
    fault = Fault(error.event, error.message, error.where, remedies, now())
    passing = error.recovery is Recovery.RETRY
    retried = passing or error.recovery is Recovery.OPERATOR_OR_RETRY
    return Block(fault.since, fault, error.about, passing=passing, retried=retried)


def blocked_statuses(
    task: str, parts: BlockedParts, running: RunningTask | None
) -> tuple[BlockedPart, ...]:
    """Return all blocked parts, and the targets that wait for a blocked or copied one.

    ``running`` is the part of the task that continues.
    """
    return tuple(_blocked(task, parts, running))


def _blocked(task: str, parts: BlockedParts, running: RunningTask | None) -> Iterator[BlockedPart]:
    for target, block in sorted(parts.targets.items()):
        held = _held(running, target)
        yield _part(
            task, TaskParts(targets=frozenset({target})), "target", shown(target), block, held
        )
    for source, block in sorted(parts.sources.items()):
        yield _part(task, TaskParts(sources=frozenset({source})), "source", source, block, ())
    if running is not None:
        yield from _waiting(running, parts)


def _part(
    task: str,
    parts: TaskParts,
    kind: PartKind,
    name: str,
    block: Block,
    held: tuple[HeldAtSource, ...],
) -> BlockedPart:
    resume = f"`{resume_command(task, parts)}`: the operator has paused it"
    remedies = block.fault.remedies if block.fault else (resume,)
    return BlockedPart(kind, name, block.since, block.fault, held=held, remedies=remedies)


def _waiting(running: RunningTask, parts: BlockedParts) -> Iterator[BlockedPart]:
    """Yield the targets that are held because a statement connects them with a blocked one."""
    waits: dict[TableName, TableName] = {}
    for unit in running.units.values():
        held = unit.reader.held
        for target in held.targets:
            if (other := held.waits_for(target)) is not None:
                waits.setdefault(target, other)
    for target, other in sorted(waits.items()):
        block = parts.targets.get(other)
        blocks = [block] if block else parts.blocks
        since = min((block.since for block in blocks), default=running.since)
        yield BlockedPart(
            "target",
            shown(target),
            since,
            waits_for=shown(other),
            held=_held(running, target),
            remedies=(f"it goes on with {shown(other)}",),
        )


def _held(running: RunningTask | None, target: TableName) -> tuple[HeldAtSource, ...]:
    if running is None:
        return ()
    return tuple(
        HeldAtSource(
            source,
            unit.reader.held.rows_held(target),
            running.writer.checkpoints.saved.get(source, ""),
            binlog_distance(running, source),
        )
        for source, unit in running.units.items()
        if target in unit.reader.held.targets
    )


def recopy_wanted(
    status: TaskStatus,
    task_mode: str,
    arguments: Mapping[str, Any],
    known: Mapping[TableName, Collection[str]],
    begun_again: Collection[str] = (),
) -> frozenset[TableName]:
    """Return the targets named in ``arguments``, and targets with shards of sources named there.

    ``known``: all targets, each with the sources of its shards. ``begun_again``: blocked sources
    that continue from their present positions. Raises ValueError if the targets can't be copied
    again in the task's present state.
    """
    if task_mode != "all":
        raise ValueError(
            f"only a task with task-mode all copies targets, and this one has {task_mode}"
        )
    parts = (part.kind == "target" or part.name in begun_again for part in status.blocked)
    stuck = status.state == "paused" and any(parts)
    if status.state != "running" and not stuck:
        raise ValueError(f"the task is {status.state}: targets are copied again while it runs")
    if not begun_again and (status.copy is None or status.copy.state != "finished"):
        raise ValueError("a target can be copied again when the full copy has finished")
    named = named_parts(arguments, known, {s for sources in known.values() for s in sources})
    of_sources = {target for target, of in known.items() if named.sources.intersection(of)}
    targets = named.targets | of_sources
    names = {shown(target) for target in targets}
    if kept := names & {shard.target for shard in status.retired if arguments.get("truncate")}:
        raise ValueError(
            f"{', '.join(sorted(kept))} keeps rows of retired shards, and would lose them:"
            " leave out --truncate"
        )
    changing = {lock.target for lock in status.locks}
    changing |= {t.target for t in status.targets if t.ddl}
    if names & changing:
        raise ValueError(
            f"a schema change of {', '.join(sorted(names & changing))} waits or is executed: let it"
            f" end first (`replicator show-ddl-locks {status.task}`)"
        )
    blocked = {part.name for part in status.blocked if part.kind == "source"} - {*begun_again}
    if missing := sorted(blocked & {s for target in targets for s in known[target]}):
        raise ValueError(
            f"the source {', '.join(missing)} is blocked, so the targets would lack its rows: end"
            f" that first (`replicator status {status.task}` has the remedies)"
            + (f", or name it, too: --source {' --source '.join(missing)}" if begun_again else "")
        )
    return targets


def sources_by_target(
    running: RunningTask | None, targets: Iterable[TableName]
) -> dict[TableName, set[str]]:
    """Return the known sources of the shards of these targets."""
    known: dict[TableName, set[str]] = {target: set() for target in targets}
    if running is not None:
        registry = running.registry
        for number, target in registry.targets():
            if target in known:
                members = map(registry.member, registry.members_of(number))
                known[target] = {member.source for member in members}
    return known
