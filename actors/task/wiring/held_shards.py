"""Whose rows wait, saved with each checkpoint: for comparisons."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from actors.task.wiring.wiring import RunningTask
from replicator.downstream.meta.held_shards import ALL_HELD, HeldShards, WaitingChange, held_by
from replicator.mysql.names import TableName


def save_held_shards(running: RunningTask, reason_of: Callable[[TableName], str]) -> None:
    """Let each checkpoint save whose rows wait; ``reason_of`` returns why a target is blocked."""
    running.writer.checkpoints.held = partial(_held_shards, running, reason_of)


def _held_shards(
    running: RunningTask, reason_of: Callable[[TableName], str]
) -> dict[TableName, HeldShards]:
    """By target, the shards whose rows wait behind locks, or all where the target is blocked."""
    units = running.units
    # A group knows of its item before the lock does.
    numbers = {n for source in units for n in running.coordination.open_targets(source)}
    changes: dict[TableName, list[WaitingChange]] = {}
    for lock in running.coordination.open_locks():
        if (waiting := lock.waiting) is not None:
            changes.setdefault(lock.view.target, []).append(waiting)
    held = {running.registry.target_name(number): ALL_HELD for number in numbers}
    held |= {target: held_by(found) for target, found in changes.items()}
    held |= dict.fromkeys(running.mover.targets, ALL_HELD)
    for unit in units.values():
        for target in unit.reader.held.targets:
            other = unit.reader.held.waits_for(target)
            reason = f"it waits for {other}: {reason_of(other)}" if other else reason_of(target)
            held[target] = HeldShards(all_of=True, reason=reason)
    return held
