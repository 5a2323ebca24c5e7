"""Renames a target when all of its shards have been renamed (`actors.sharding.moved_shards`).

It waits until all of these statements are read, and all earlier events applied. Then the sources
stop, the target is renamed, and everything starts from the saved state, before the statements. If a
target with other shards has the new name, the rows move to that target instead.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Protocol

import anyio
from attrs import define, field

from actors.errors.faults import DdlEvent, FatalError, fault, of_target
from actors.saved.lock_state import ShardStatement
from actors.sharding.moved_shards import MovedShards, WaitingShard
from actors.sharding.shard_mode import Coordination, LockRemedy, OpenLock, Unit
from actors.writing.batched_writer import BatchedWriter
from replicator.downstream.ddl.target_renames import RenameRefusedError, TargetRenames
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.moved_shards import JOINS, AppliedUntil, MovedShard
from replicator.downstream.meta.row_owners import had_shards
from replicator.downstream.meta.tracked_keys import TRACKED_KEY_TABLE, tracked_targets
from replicator.events.fault_catalogue import shared_text
from replicator.mysql.names import Member, TableName, folded
from replicator.schema.effects.moved_columns import (
    ColumnPairs,
    ColumnsDifferError,
    moved_columns,
)
from replicator.schema.structure.structure import Table, differences
from replicator.sharding.items import Item
from replicator.sharding.open_locks import LockView
from replicator.watermark import Place

LOOK_SECONDS = 0.2
"""Seconds between two checks whether all shards of a target have left it."""

STEPS = 16
"""Minimum number of changes by one statement; each has its own position."""

_Groups = dict[TableName, list[WaitingShard]]


class MovingUnit(Unit, Protocol):
    """What renaming a target needs to know about a source."""

    def holds(self, target: TableName) -> bool:
        """Return whether its reader drops events of a target."""

    @property
    def reports(self) -> int:
        """How often the source has reported to this run's reader that there is no more to read."""

    def has_read(self, end: int, reports: int) -> bool:
        """Return whether the reader has reached a position, or has had more reports since."""


@dataclass(frozen=True, slots=True)
class _Aim:
    """The positions that all sources must reach before targets get their new names.

    Attributes:
        ready: the shards of these targets.
        epochs: the runs of the sources at that time.
        ends: the ends of the binlogs, by source.
        reports: numbers of the sources' reports until then.
    """

    ready: _Groups
    epochs: Mapping[str, int]
    ends: Mapping[str, int]
    reports: Mapping[str, int]


@define(eq=False)
class TargetMover:
    """Renames targets between two generations.

    ``_stopped``: the sources that are not read; no target is renamed until they are. ``_ends``
    returns the present ends of all binlogs (keys), or None while one is unknown.
    """

    _shards: MovedShards
    _renames: TargetRenames
    _meta: MetaStore
    _writer: BatchedWriter
    _coordination: Coordination
    _units: Mapping[str, MovingUnit]
    _stopped: Sequence[str]
    _ends: Callable[[], Awaitable[Mapping[str, int] | None]]
    _ready: _Groups = field(factory=dict, init=False)
    _aim: _Aim | None = field(default=None, init=False)
    _joining: Sequence[WaitingShard] = field(default=(), init=False)

    async def due(self) -> None:
        """Wait until targets can be renamed, or shards can join others.

        Raises FatalError if a target can't get its new name.
        """
        while True:
            await self._shards.next_waiting()
            if self._all_run() and (joining := self._may_join()):
                await self._applied()
                if self._may_join() == joining and self._is_level(_new_targets(joining)):
                    self._joining = joining
                    return
            if await self._occupied():
                # Groups may lag behind their readers.
                await self._applied()
                if occupied := await self._occupied():
                    to = occupied.move.target
                    raise _occupied([occupied], f"there is a table {to} on the target")
            ready = await self._all_ready()
            if ready and await self._is_read(ready):
                await self._applied()
                if await self._all_ready() == ready:
                    await self._refuse_lost_columns(ready)
                    await self._matched_columns(ready)
                    self._ready = ready
                    return
            await anyio.sleep(LOOK_SECONDS)

    async def move(self) -> None:
        """Rename the targets that are ready, or let shards join other targets.

        Nothing may be read or written meanwhile. Raises FatalError, DatabaseUnavailableError.
        """
        if self._joining:
            if self._may_join() == self._joining and self._is_level(_new_targets(self._joining)):
                joined = [replace(shard.move, version=JOINS) for shard in self._joining]
                await self._renames.admit(joined, self._until(joined), self._shards.lives())
            return
        ready = await self._all_ready()
        names = _new_targets(shards[0] for shards in ready.values()) | ready.keys()
        if not self._ready or ready != self._ready or not self._is_level(names):
            return
        moves = [
            replace(shard.move, version=self._version(name))
            for name, shards in sorted(ready.items())
            for shard in shards
        ]
        gone = [
            MovedShard(shards[0].move.member, 0, to, self._renames.aside(to), self._version(to))
            for shards in ready.values()
            if (to := shards[0].move.target) not in ready
            and self._has_dropped(shards)
            and await self._renames.exists(to)
        ]
        until, lives = self._until(moves), self._shards.lives()
        try:
            if await self._joins(ready):
                await self._widen(ready)
                columns = await self._matched_columns(ready)
                await self._renames.join(moves, until, lives, columns)
            else:
                await self._renames.execute([*moves, *gone], until, lives)
        except RenameRefusedError as error:
            shards = next(iter(ready.values()))
            raise _occupied(shards, f"the target refused the statement: {error}") from error

    def open_locks(self) -> list[OpenLock]:
        """Return the targets that wait to be renamed."""
        waiting = self._waiting()
        locks = [
            replace(
                _lock(self._writer, found, sorted({n for s in found for n in self._dropping(s)})),
                others=self.targets,
            )
            for found in waiting.values()
        ]
        sources = {lock.view.target: lock.view.missing.keys() for lock in locks}
        return [
            _in_circle(lock) if self._shards.in_circle(lock.view.target, sources) else lock
            for lock in locks
        ]

    @property
    def targets(self) -> Set[TableName]:
        """Return the targets that shards wait to leave, or to join."""
        return self._shards.targets

    def _waiting(self) -> _Groups:
        found: _Groups = {}
        for shard in self._shards.waiting:
            found.setdefault(shard.move.former, []).append(shard)
        return found

    async def _applied(self) -> None:
        """Wait until everything that the readers have sent is applied."""
        await self._writer.passed(
            {source: (unit.epoch, unit.last_segment) for source, unit in self._units.items()}
        )

    async def _is_read(self, ready: _Groups) -> bool:
        """Return whether the sources are read up to the ends at the last shard's renaming.

        A slower source may have shards of the same target that are renamed later, and that the task
        does not know yet, because they are new, or because it reads them again.
        """
        if not self._all_run():
            return False
        epochs = {source: unit.epoch for source, unit in self._units.items()}
        if self._aim is None or self._aim.ready != ready or self._aim.epochs != epochs:
            reports = {source: unit.reports for source, unit in self._units.items()}
            ends = await self._ends()
            self._aim = None if ends is None else _Aim(ready, epochs, ends, reports)
        aim = self._aim
        return aim is not None and all(
            unit.epoch == aim.epochs[source]
            and unit.has_read(aim.ends[source], aim.reports[source])
            for source, unit in self._units.items()
        )

    def _all_run(self) -> bool:
        return all(unit.running and not unit.restarting for unit in self._units.values())

    async def _occupied(self) -> WaitingShard | None:
        """Return a shard that waits for a name that a table without shards has, if there is one.

        The shards of that table may be about to leave it, on a slower source.
        """
        if not all(unit.up_to_date for unit in self._units.values()):
            return None
        for shard in self._shards.waiting:
            to = shard.move.target
            if self._shards.is_left(to) or self._has_dropped([shard]) or await self._stays(to):
                continue
            if await self._renames.exists(to):
                return shard
        return None

    def _has_dropped(self, shards: Sequence[WaitingShard]) -> bool:
        """Return whether shards have dropped the table that had their new name before."""
        return any(
            self._coordination.gives_way(
                shard.move.target, Member(shard.move.member.source, shard.name)
            )
            for shard in shards
        )

    def _dropping(self, shard: WaitingShard) -> Sequence[int]:
        """Return the shards of a target that is dropped with them, if a shard waits for its name.

        The waiting shard has dropped the table that had its new name before.
        """
        return self._members(shard.move.target) if self._has_dropped([shard]) else ()

    async def _joins(self, ready: _Groups) -> bool:
        """Return whether the rows of the only ready target move to another one."""
        shards = next(iter(ready.values()))
        to = shards[0].move.target
        return to not in ready and not self._has_dropped(shards) and await self._stays(to)

    async def _stays(self, target: TableName) -> bool:
        """Return whether a target has shards, or exists and has had shards."""
        if self._members(target):
            return True
        return await had_shards(self._meta, target) and await self._renames.exists(target)

    async def _matched_columns(self, ready: _Groups) -> ColumnPairs:
        """Return the pairs of columns for rows that move to another target.

        Raises FatalError if the columns do not match.
        """
        if not await self._joins(ready):
            return ()
        [(former, shards)] = ready.items()
        own, there = (
            await self._renames.table(former),
            await self._renames.table(to := shards[0].move.target),
        )
        if own is None or there is None:
            raise _occupied(shards, f"there is no table {former if own is None else to}")
        if children := await self._renames.children(former):
            raise _occupied(shards, f"foreign keys of {children[0]} refer to {former}")
        for shard in shards:
            held = self._last_structure(shard)
            if held is None or differences(own, held):
                raise _occupied([shard], f"the shard has not the same columns as {former}")
        wider = self._coordination.widening(own, there)
        try:
            paths = await self._coordination.paths(own, to)
            return moved_columns(own, there if wider is None else wider.table, paths)
        except ColumnsDifferError as error:
            raise _occupied(shards, str(error)) from error

    async def _widen(self, ready: _Groups) -> None:
        """Alter a target for the rows that move to it, before its new members are read.

        Raises RenameRefusedError.
        """
        [(former, shards)] = ready.items()
        own, there = (
            await self._renames.table(former),
            await self._renames.table(shards[0].move.target),
        )
        if own is None or there is None:
            return
        if (wider := self._coordination.widening(own, there)) is not None:
            await self._renames.widen(shards[0].move.target, wider.sql)

    async def _refuse_lost_columns(self, ready: _Groups) -> None:
        """Raise FatalError if a target has lost columns that a shard had."""
        if await self._joins(ready):
            return
        for name, shards in ready.items():
            there = await self._renames.columns(name)
            for shard in shards:
                table = self._last_structure(shard)
                columns = table.columns if table is not None else ()
                if lacking := sorted({folded(column.name) for column in columns} - there):
                    raise _occupied(
                        [shard],
                        "other shards have dropped or renamed columns since, which this shard had:"
                        f" {', '.join(lacking)}",
                    )

    def _last_structure(self, shard: WaitingShard) -> Table | None:
        """Return the certain structure of a shard when it was renamed; None if uncertain."""
        registry = self._writer.registry
        number = registry.number(shard.move.member)
        if number is None:
            return None
        # The statement may also have changed the shard, before renaming it.
        end = shard.move.place + STEPS
        places = [place for place in registry.places(number) if place < end]
        held = (registry.held(number, place) for place in reversed(places))
        return next((known.certain for known in held if known.structure is not None), None)

    async def _all_ready(self) -> _Groups:
        """Return the targets that can be renamed now, together."""
        found = {
            name: shards
            for name, shards in self._waiting().items()
            if not self._stopped and self._all_left(name, shards)
        }
        if found:
            # A tracked key would be searched for in the shards of the former target.
            tracked = await tracked_targets(
                self._meta.connection, self._meta.table(TRACKED_KEY_TABLE)
            )
            found = {
                name: shards
                for name, shards in found.items()
                if not {name, shards[0].move.target} & tracked.keys()
            }
        joining = found
        while True:
            kept: _Groups = {}
            for name, shards in sorted(found.items()):
                to = shards[0].move.target
                if any(others[0].move.target == to for others in kept.values()):
                    # Its rows move to that target when it has the name.
                    continue
                if to in found or await self._gets_free(to, shards):
                    kept[name] = shards
            if len(kept) == len(found):
                break
            found = kept
        return kept or await self._one_that_joins(joining)

    async def _gets_free(self, target: TableName, shards: Sequence[WaitingShard]) -> bool:
        """Return whether a name is free, or its target is replaced by the target of shards."""
        if self._members(target):
            return False
        if self._has_dropped(shards):
            if self._shards.is_left(target):
                # It has the rows of shards that wait for another name, and keeps them.
                return False
            children = set(await self._renames.children(target)) - {target}
            return not children and not self._is_open(target)
        return not await self._renames.exists(target)

    async def _one_that_joins(self, found: _Groups) -> _Groups:
        """Return a target whose rows can now move to the target with its shards' new name."""
        for name, shards in sorted(found.items()):
            to = shards[0].move.target
            if self._shards.is_left(to) or self._has_dropped(shards) or self._is_open(to):
                continue
            if await self._stays(to):
                return {name: shards}
        return {}

    def _all_left(self, target: TableName, shards: Sequence[WaitingShard]) -> bool:
        """Return whether no shard is left, and no schema change of the target is open."""
        if self._members(target):
            return False
        for shard in shards:
            unit = self._units.get(shard.move.member.source)
            if unit is None or unit.epoch != shard.epoch:
                return False
        targets = {shard.move.target for shard in shards}
        if len(targets) > 1:
            names = " and ".join(map(str, sorted(targets)))
            raise _occupied(shards, f"its shards come to several targets: {names}")
        if any(unit.holds(name) for unit in self._units.values() for name in (target, *targets)):
            return False
        return not self._is_open(target)

    def _is_open(self, target: TableName) -> bool:
        number = self._writer.registry.target(target)
        opened = any(number in self._coordination.open_targets(source) for source in self._units)
        locks = self._coordination.open_locks()
        return opened or any(target == lock.view.target for lock in locks)

    def _members(self, target: TableName) -> Sequence[int]:
        registry = self._writer.registry
        return registry.members_of(registry.target(target))

    def _may_join(self) -> Sequence[WaitingShard]:
        return [shard for shard in self._shards.joining if self._is_free(shard)]

    def _is_free(self, shard: WaitingShard) -> bool:
        unit, to = self._units.get(shard.move.member.source), shard.move.target
        if unit is None or unit.epoch != shard.epoch:
            return False
        return not any(unit.holds(to) for unit in self._units.values())

    def _is_level(self, names: Set[TableName]) -> bool:
        """Return whether each target, and each touched one, has only whole transactions."""
        registry = self._writer.registry
        names = names | self._shards.touched
        for source in self._units:
            tracker = self._writer.tracker(source)
            reached = tracker.reached.position
            for number in map(registry.target, names):
                low = tracker.low_watermarks.get(number)
                if not tracker.is_level(number):
                    return False
                if low is not None and (reached is None or low.transaction >= reached.binlog.key):
                    return False
        return True

    def _until(self, moves: Sequence[MovedShard]) -> list[AppliedUntil]:
        """Return the positions up to which targets have the rows of each source."""
        registry = self._writer.registry
        found: dict[tuple[str, TableName], tuple[int, int]] = {}
        renamed = [move for move in moves if move.version != JOINS]
        former = {move.former for move in renamed}
        for move in renamed:
            key = move.member.source, move.former
            before = found.get(key, (0, 0))[0]
            found[key] = max(move.place, before), self._version(move.former, move.member.source)
        names = former | {move.target for move in moves}
        names |= self._shards.touched
        for source in self._units:
            low_watermarks = self._writer.tracker(source).low_watermarks
            for name in names:
                low = low_watermarks.get(registry.target(name))
                if low is not None:
                    # The other targets may have held rows of later versions.
                    version = self._version(name, source) if name in former else low.version
                    place = max(low.transaction + 1, found.get((source, name), (0, 0))[0])
                    found[source, name] = place, version
        entered = {move.target: self._version(move.target) for move in moves}
        return [
            *(
                AppliedUntil(*key, place, version)
                for key, (place, version) in sorted(found.items())
            ),
            *(AppliedUntil("", name, 0, version) for name, version in sorted(entered.items())),
        ]

    def _version(self, target: TableName, source: str = "") -> int:
        """Return the version of a target, or the version known to the group of a source."""
        number = self._writer.registry.target(target)
        units = (unit for name, unit in self._units.items() if source in ("", name))
        groups = [unit.groups[number] for unit in units if number in unit.groups]
        return max((group.version for group in groups), default=0)


def _lock(
    writer: BatchedWriter, shards: Sequence[WaitingShard], dropping: Sequence[int]
) -> OpenLock:
    """Return the lock of a target whose shards wait.

    ``dropping`` are shards to be dropped first.
    """
    registry, move = writer.registry, shards[0].move
    missing: dict[str, tuple[TableName, ...]] = {}
    for number in (*registry.members_of(registry.target(move.former)), *dropping):
        member = registry.member(number)
        missing[member.source] = (*missing.get(member.source, ()), member.name)
    text = f"rename table {move.former} to {move.target}"
    place, event = Place(move.place, 0), ShardStatement(shards[0].statement)
    ready = {shard.move.member.source for shard in shards} - missing.keys()
    view = LockView(
        target=move.former,
        version=0,
        item=Item(text, (text,), move.member.name, place, event),
        owner=move.member.source,
        ready=tuple(sorted(ready)),
        missing=missing,
        rows_held=0,
        conflict=None,
        resolving=not missing,
    )
    since = min(shard.statement.timestamp for shard in shards) or None
    holding = {shard.move.member.source: shard.statement.timestamp for shard in shards}
    reason = (
        f"{len(shards)} renamed shards wait: the target gets its new name when all of its shards"
        " have been renamed"
    )
    first = "rename the shards that lack it like the others"
    if dropping:
        reason += f", and all shards of {move.target} dropped"
        first = f"drop the shards of {move.target}, and {first}"
    position = shards[0].statement.position
    skip = f"`replicator binlog skip TASK --source {move.member.source} --binlog-pos {position}`"
    return OpenLock(
        f"{move.former}-rename",
        view,
        since,
        holding if since else {},
        reason,
        (
            LockRemedy(first),
            LockRemedy(
                "if they keep their names: `replicator pause TASK`. Move the rows of the renamed"
                f" shards by hand to {move.target}, in a session with `SET SESSION"
                f" foreign_key_checks=0`. Then {skip} (and the same for the other renamed shards),"
                " then `replicator resume TASK`: they belong to the new target then"
            ),
        ),
    )


def _in_circle(lock: OpenLock) -> OpenLock:
    """Return the lock of a target whose renaming waits for itself, through other targets."""
    return replace(
        lock,
        reason=f"{lock.reason}. The shards that lack it are read no further, since foreign keys"
        " connect them with other renamed shards of their sources, whose targets wait for this one:"
        " the sources have renamed the tables in different orders, so no statement on a shard ends"
        " this",
        remedies=(*lock.remedies[1:], LockRemedy(shared_text("copy_again"))),
    )


def _new_targets(shards: Iterable[WaitingShard]) -> Set[TableName]:
    return {shard.move.target for shard in shards}


def _occupied(shards: Sequence[WaitingShard], reason: str) -> FatalError:
    """Return the fault of shards whose target can't get the new name."""
    move, statement = shards[0].move, shards[0].statement
    return fault(
        "ddl.move-in",
        "occupied",
        scope=of_target(move.former, move.target),
        about=DdlEvent(move.member.source, statement.position),
        source=move.member.source,
        target=move.former,
        there=move.target,
        table=move.member.name,
        statement=statement.sql[:500],
        reason=reason,
    )
