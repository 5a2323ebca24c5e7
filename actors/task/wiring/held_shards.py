"""The shards whose rows wait: for comparisons, in the status, and saved with each checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from actors.task.wiring.wiring import RunningTask
from replicator.downstream.meta.held_shards import ALL_HELD, HeldShards
from replicator.mysql.names import TableName
from replicator.status import HeldTarget

ReasonOf = Callable[[TableName], str]
"""Returns why a target is blocked."""


def save_held_shards(running: RunningTask, reason_of: ReasonOf) -> None:
    """Make each checkpoint save the shards whose rows wait."""

    def held() -> dict[TableName, HeldShards]:
        found = held_shards(running, reason_of)
        return {target: replace(shards, events=None) for target, shards in found.items()}

    running.writer.checkpoints.held = held


def held_statuses(running: RunningTask, reason_of: ReasonOf) -> tuple[HeldTarget, ...]:
    """Return the shards whose rows wait, for the status."""
    return tuple(
        HeldTarget(str(target), held.all_of, tuple(sorted(held.shards)), held.reason, held.events)
        for target, held in sorted(held_shards(running, reason_of).items())
    )


def held_shards(running: RunningTask, reason_of: ReasonOf) -> dict[TableName, HeldShards]:
    """Return the shards whose rows wait for schema changes, or all if the target is blocked."""
    found = running.coordination.held().items()
    held = {target: shards for target, shards in found if shards.some}
    held |= dict.fromkeys(running.mover.targets, ALL_HELD)
    for unit in running.units.values():
        for target in unit.reader.held.targets:
            other = unit.reader.held.waits_for(target)
            reason = f"it waits for {other}: {reason_of(other)}" if other else reason_of(target)
            held[target] = HeldShards(all_of=True, reason=reason)
    return held
