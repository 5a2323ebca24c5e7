"""The open locks of a task as its status tells them, each with the commands that get it going."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from datetime import UTC, datetime

from actors.lock_state import ShardStatement
from actors.sharding.lock_coordinator import LockCoordinator, lock_id
from actors.task.generation import Generation
from replicator.binlog.retention import Distance
from replicator.sharding.items import Claim
from replicator.sharding.lock import LockView
from replicator.status import (
    BinlogDistance,
    LockClaim,
    LockConflict,
    LockSource,
    LockState,
    LockStatus,
)


def lock_statuses(task: str, generation: Generation) -> tuple[LockStatus, ...]:
    """All open locks; none where DDL is not coordinated."""
    coordinator = generation.coordinator
    if coordinator is None:
        return ()
    return tuple(_lock(task, generation, coordinator, view) for view in coordinator.views())


def binlog_distance(generation: Generation, source: str) -> BinlogDistance | None:
    """How far the position that a restart begins at is from both ends of the binlog."""
    found: Distance | None = generation.watch.distances.get(source) if generation.watch else None
    if found is None:
        return None
    return BinlogDistance(found.files_behind, found.bytes_behind, found.files_left)


def _lock(
    task: str, generation: Generation, coordinator: LockCoordinator, view: LockView[ShardStatement]
) -> LockStatus:
    conflict = view.conflict
    state: LockState = "waiting"
    if view.resolving:
        state = "resolving"
    elif conflict is not None:
        state = "conflict"
    return LockStatus(
        id=lock_id(view),
        target=view.target,
        version=view.version,
        ddl="; ".join(view.item.statements),
        owner=view.owner or "",
        state=state,
        since=datetime.fromtimestamp(coordinator.since(view), UTC),
        rows_held=view.rows_held,
        sources=tuple(_source(generation, view, source) for source in generation.units),
        conflict=LockConflict(conflict.version, _claim(conflict.ours), _claim(conflict.theirs))
        if conflict
        else None,
        ways_out=tuple(_ways(task, view)),
    )


def _source(generation: Generation, view: LockView[ShardStatement], source: str) -> LockSource:
    assert generation.writer is not None
    position = generation.writer.tracker(source).resume.position
    return LockSource(
        source=source,
        ready=source in view.ready or view.resolving,
        missing=() if view.resolving else view.missing.get(source, ()),
        saved_position=str(position.binlog) if position else "",
        distance=binlog_distance(generation, source),
    )


def _claim(claim: Claim[ShardStatement]) -> LockClaim:
    statements = tuple("; ".join(item.statements) for item in claim.items)
    return LockClaim(claim.source, claim.items[0].member, statements)


def _ways(task: str, view: LockView[ShardStatement]) -> Iterator[str]:
    unlock = f"replicator unlock-ddl-lock {shlex.quote(task)} {shlex.quote(lock_id(view))}"
    conflict = view.conflict
    if view.resolving:
        yield "wait: it is being executed; a fault of the task says what keeps it from that"
        return
    if conflict is not None and conflict.version == view.version:
        for claim in dict.fromkeys((conflict.ours.source, conflict.theirs.source)):
            yield (
                f"`{unlock} --owner {shlex.quote(claim)}`: the statement of source {claim} is"
                " executed; that of the others counts as the same, and is not. Its columns must"
                " hold the values of all shards"
            )
        yield (
            f"`{unlock} --action skip`: none is executed; then do by hand on the target what makes"
            " the rows of all shards fit"
        )
        return
    if conflict is not None:
        yield (
            f"the conflict is on item {conflict.version}: it can be unlocked when the items before"
            " it are resolved"
        )
    lacking = [f"{s}: {', '.join(members)}" for s, members in view.missing.items()]
    if lacking:
        yield f"run the statement on the other shards ({'; '.join(lacking)}): that resolves it"
        yield (
            f"`{unlock}`: it is executed now; the shards that lack it may bring it later, and their"
            " rows are matched by column name"
        )
        yield f"`{unlock} --action skip`: all shards count as having it, and it is not executed"
    else:
        yield "wait: all shards have it, a source is still reading up to there"
