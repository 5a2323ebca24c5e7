"""The blocked parts of a task as its status tells them."""

from __future__ import annotations

from collections.abc import Iterator

from actors.faults import Parts
from actors.task.operator.blocked_parts import Block, BlockedParts, resume_command, shown
from actors.task.operator.lock_report import binlog_distance
from actors.task.wiring.wiring import RunningTask
from replicator.mysql.names import TableName
from replicator.status import BlockedPart, HeldAtSource, PartKind


def blocked_statuses(
    task: str, parts: BlockedParts, running: RunningTask | None
) -> tuple[BlockedPart, ...]:
    """All blocked parts, and what waits for a blocked target, or for one that is being copied.

    ``running``: what goes on.
    """
    return tuple(_blocked(task, parts, running))


def _blocked(task: str, parts: BlockedParts, running: RunningTask | None) -> Iterator[BlockedPart]:
    for target, block in sorted(parts.targets.items()):
        held = _held(running, target)
        yield _part(task, Parts(targets=frozenset({target})), "target", shown(target), block, held)
    for source, block in sorted(parts.sources.items()):
        yield _part(task, Parts(sources=frozenset({source})), "source", source, block, ())
    if running is not None:
        yield from _waiting(running, parts)


def _part(
    task: str,
    parts: Parts,
    kind: PartKind,
    name: str,
    block: Block,
    held: tuple[HeldAtSource, ...],
) -> BlockedPart:
    resume = f"`{resume_command(task, parts)}`: the operator has paused it"
    remedies = block.fault.remedies if block.fault else (resume,)
    return BlockedPart(kind, name, block.since, block.fault, held=held, remedies=remedies)


def _waiting(running: RunningTask, parts: BlockedParts) -> Iterator[BlockedPart]:
    """The targets that are held since a statement has tied them to a blocked one."""
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
            running.writer.progress.saved.get(source, ""),
            binlog_distance(running, source),
        )
        for source, unit in running.units.items()
        if target in unit.reader.held.targets
    )
