"""The open locks of a task in its status, each with the commands that resolve it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from actors.saved.lock_state import ShardStatement
from actors.sharding.shard_mode import LockRemedy, OpenLock
from actors.task.wiring.wiring import RunningTask
from replicator.binlog.positions.position import Distance
from replicator.mysql.names import Member, TableName
from replicator.schema.structure.structure import Table
from replicator.sharding.items import Claim
from replicator.sharding.open_locks import LockView
from replicator.status import (
    BinlogDistance,
    DifferingShard,
    DifferingTarget,
    LockClaim,
    LockConflict,
    LockSource,
    LockState,
    LockStatus,
)
from replicator.terminal.figures import some_by_source, some_of

MOST_SHARDS = 5
"""Maximum number of shards that a remedy names; the status and show-ddl-locks --all name all."""

_LATEST = 1 << 62
"""A key after every position of a binlog."""

_SHOWN = 500
"""Maximum length of a statement among the remedies."""


def lock_statuses(task: str, running: RunningTask) -> tuple[LockStatus, ...]:
    """Return all open locks."""
    return tuple(_lock(task, running, lock) for lock in running.open_locks())


def differing_targets(running: RunningTask) -> tuple[DifferingTarget, ...]:
    """Return the targets whose shards differ without a fault, with the differences."""
    return tuple(
        DifferingTarget(
            str(target),
            tuple(
                DifferingShard(member.source, str(member.name), texts)
                for member, texts in found.members.items()
            ),
            found.notices,
        )
        for target, found in running.coordination.differences().items()
    )


def binlog_distance(running: RunningTask, source: str) -> BinlogDistance | None:
    """Return the distance of a restart's first position from both ends of the binlog."""
    found: Distance | None = running.watch.distances.get(source)
    if found is None:
        return None
    return BinlogDistance(found.files_behind, found.bytes_behind, found.files_left)


def _lock(task: str, running: RunningTask, lock: OpenLock) -> LockStatus:
    view = lock.view
    conflict = view.conflict
    state: LockState = "waiting"
    if view.resolving:
        state = "resolving"
    elif conflict is not None:
        state = "conflict"
    return LockStatus(
        id=lock.id,
        target=str(view.target),
        version=view.version,
        ddl="; ".join(view.item.statements),
        owner=view.owner or "",
        state=state,
        since=None if lock.since is None else datetime.fromtimestamp(lock.since, UTC),
        rows_held=view.rows_held,
        sources=(
            *(_source(running, view, source) for source in running.units),
            *(_stopped(running, source) for source in running.stopped),
        ),
        conflict=LockConflict(conflict.version, _claim(conflict.ours), _claim(conflict.theirs))
        if conflict
        else None,
        remedies=(*_blocked(running), *_remedies(task, lock, _alike(running, view))),
        reason=lock.reason,
        shard=lock.shard,
        holds=lock.holds,
        refused=lock.refused,
        others=tuple(sorted(map(str, lock.others))),
    )


def _source(
    running: RunningTask, view: LockView[TableName, ShardStatement], source: str
) -> LockSource:
    position = running.writer.tracker(source).resume.position
    return LockSource(
        source=source,
        ready=source in view.ready or view.resolving,
        missing=() if view.resolving else tuple(map(str, view.missing.get(source, ()))),
        saved_position=str(position.binlog) if position else "",
        distance=binlog_distance(running, source),
    )


def _stopped(running: RunningTask, source: str) -> LockSource:
    saved = running.stopped[source].saved
    return LockSource(
        source,
        ready=False,
        saved_position=str(saved) if saved else "",
        distance=binlog_distance(running, source),
    )


def _blocked(running: RunningTask) -> Iterator[str]:
    if running.stopped:
        yield f"sources that are blocked have to go on first: {', '.join(sorted(running.stopped))}"


def _claim(claim: Claim[TableName, ShardStatement]) -> LockClaim:
    statements = tuple("; ".join(item.statements) for item in claim.items)
    return LockClaim(claim.source, str(claim.items[0].member), statements)


def choices_of(task: str, lock: OpenLock) -> Iterator[str]:
    """Yield the statements of shards for one item, each with the command that accepts it."""
    unlock = f"replicator unlock-ddl-lock {shlex.quote(task)} {shlex.quote(lock.id)}"
    if lock.remedies:
        yield from (_remedy(task, unlock, way) for way in lock.remedies)
        return
    for choice in lock.view.choices:
        owner = f"--owner {shlex.quote(choice.source)}"
        if choice.by_member:
            owner += f" --shard {shlex.quote(str(choice.item.member))}"
        holders = "; ".join(
            f"source {source}: {some_of([*map(str, members)])}"
            for source, members in choice.members.items()
        )
        others = "those of the other shards count as the same, and are not executed"
        yield (
            f"`{unlock} {owner}`: executes the statement of {holders}; {others}. Its columns must"
            " hold the values of all shards. The statement:"
            f" {'; '.join(choice.item.statements)[:_SHOWN]}"
        )
    yield (
        f"`{unlock} --action skip`: executes none; do by hand on the target, before, what makes the"
        " rows of all shards fit"
    )


def _remedy(task: str, unlock: str, way: LockRemedy) -> str:
    if way.position:
        name = shlex.quote(task)
        table = way.shard if way.shard.replace("_", "").replace(".", "").isalnum() else ""
        where = f"--source {shlex.quote(way.owner)} --binlog-pos {way.position}"
        return (
            f"{way.text}: `replicator binlog replace {name} 'ALTER TABLE {table} …' {where}`, then"
            f" `replicator pause {name}` and `replicator resume {name}`"
        )
    if not way.action:
        return way.text
    shard = f"--source {shlex.quote(way.owner)} --shard {shlex.quote(way.shard)}"
    return f"`{unlock} {shard} --action {way.action}`: {way.text}"


def _alike(
    running: RunningTask, view: LockView[TableName, ShardStatement]
) -> dict[str, list[TableName]]:
    """Return, by source, the shards without the statement that have the structure after it."""
    registry, item = running.registry, view.item
    sources = [view.owner] if view.owner else [s for s in running.units if s not in view.missing]
    numbers = [registry.number(Member(source, item.member)) for source in sources]
    made = next((number for number in numbers if number is not None), None)
    after = registry.held(made, item.at.transaction).structure if made is not None else None
    if after is None:
        return {}
    found: dict[str, list[TableName]] = {}
    for source, names in view.missing.items():
        for name in names:
            number = registry.number(Member(source, name))
            held = registry.held(number, _LATEST).structure if number is not None else None
            if held is not None and _parts(held) == _parts(after):
                found.setdefault(source, []).append(name)
    return found


def _parts(table: Table) -> tuple[object, ...]:
    whole = table.definition
    return whole.columns, whole.keys, whole.checks, whole.foreign_keys, whole.partitioning


def _remedies(task: str, lock: OpenLock, alike: Mapping[str, Sequence[TableName]]) -> Iterator[str]:
    unlock = f"replicator unlock-ddl-lock {shlex.quote(task)} {shlex.quote(lock.id)}"
    view = lock.view
    conflict = view.conflict
    if lock.remedies:
        yield from choices_of(task, lock)
        return
    if view.resolving:
        yield "wait: it is being executed; a fault of the task says what keeps it from that"
        return
    if view.choices:
        yield from choices_of(task, lock)
        return
    if conflict is not None:
        yield (
            f"the conflict is on item {conflict.version}: it can be unlocked when the items before"
            " it are resolved"
        )
    if view.outside:
        yield (
            "the statement would also remove the rows of shards that are retired, or whose source"
            f" is not in the task file ({some_of(view.outside)}). If a source is only missing"
            " there: put it back, `replicator stop`, `replicator run`: the target then waits for"
            " its shards, too"
        )
        yield f"`{unlock} --action skip`: the target keeps its rows, also those of this shard"
    elif view.missing:
        lacking = {
            source: [str(name) for name in names if name not in alike.get(source, ())]
            for source, names in view.missing.items()
        }
        if shown := some_by_source(lacking, MOST_SHARDS):
            yield f"run the statement on the other shards ({shown}): that resolves it"
        having = {source: [*map(str, names)] for source, names in alike.items()}
        if there := some_by_source(having, MOST_SHARDS):
            there = f" These shards have the structure already, and can't make it: {there}."
        later = (
            " The shards that lack it may make it later, and their rows are matched by column name"
        )
        yield f"`{unlock}`: the target executes it now.{there}{later if shown else ''}"
        yield f"`{unlock} --action skip`: all shards count as having it, and it is not executed"
    else:
        yield "wait: all shards have it, a source is still reading up to there"
