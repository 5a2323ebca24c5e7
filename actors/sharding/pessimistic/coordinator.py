"""The lock coordinator: keeps the locks of all targets, and executes agreed items."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import anyio
import anyio.abc
import structlog

from actors.errors.faults import FatalError
from actors.mailboxes.actor import Actor
from actors.saved.lock_state import LockHistory, ShardStatement, record_of
from actors.sharding.database_group import DatabaseGroup
from actors.sharding.group import GroupActor
from actors.sharding.pessimistic.earlier_versions import OTHERS_SECONDS, EarlierVersions
from actors.sharding.pessimistic.group import GroupTools, PessimisticGroup
from actors.sharding.pessimistic.item_numbers import mark_later_items
from actors.sharding.pessimistic.late_members import note_ahead
from actors.sharding.pessimistic.lock_messages import (
    EarlierItems,
    GroupChanged,
    LockMessage,
    TableAhead,
    Unlock,
)
from actors.sharding.pessimistic.open_locks import held_shards, lock_id, open_lock
from actors.sharding.pessimistic.shown_items import QuietLooks, note_shown
from actors.sharding.pessimistic.target_versions import TargetVersions
from actors.sharding.pessimistic.unreached_cutovers import UnreachedCutovers
from actors.sharding.pessimistic.waiting_parents import WaitingParents
from actors.sharding.shard_mode import Coordination, CoordinationTools, OpenLock, Unit
from replicator.binlog.segments.row_events import merged
from replicator.ddl.parser.statement import TableRole
from replicator.ddl.parser.statement_kinds import classify_in
from replicator.downstream.ddl.ddl_execution import DdlRefusedError
from replicator.downstream.meta.decisions import DecisionStore
from replicator.downstream.meta.held_shards import HeldShards
from replicator.failpoints import Failpoint, reach
from replicator.mysql.errors import FOREIGN_KEY
from replicator.mysql.names import Member, TableName
from replicator.schema.effects.column_path import ColumnPath
from replicator.schema.structure.structure import Table
from replicator.sharding.hold import HoldBudget, HoldBuffer
from replicator.sharding.items import Conflict, GroupState, Item, MemberState
from replicator.sharding.open_locks import UnlockError
from replicator.sharding.pessimistic.lock import Resolution, TargetLock
from replicator.watermark import Place, boundary

COORDINATOR_CAPACITY = 1
"""The coordinator only receives control messages, no rows."""

HELD_PART_OF_A_BATCH = 4
"""Held rows may use the size of one batch divided by this number in the memory of a task."""

GATHERING_SECONDS = 1.0
"""Maximum seconds that the restart of a source waits for locks that are being resolved."""

READ_AGAIN_SECONDS = 15.0
"""Maximum seconds that the answer to an unlock waits for restarted sources.

It is less than the timeout of the operator's command
(`actors.task.operator.operator_commands.UNLOCK_SECONDS`).
"""

UNREAD_SECONDS = 1.0
"""Seconds that a refused item waits for unread changes of other targets."""

READ_AGAIN_LOOK_SECONDS = 0.05
"""Seconds between two checks whether restarted sources have read their events again."""


class LockCoordinator(Actor[LockMessage], Coordination):
    """Evaluates a target's lock whenever one of its groups changes.

    An agreed item is decided and saved, and it is executed after the writer has applied all older
    rows. Then the sources that held rows of it restart, and the others adopt the new version. The
    locks read the groups directly, since all of them run on one event loop.

    A source that is not read keeps its locks waiting. The lock of a blocked target is neither
    decided nor executed.
    """

    def __init__(
        self,
        tools: CoordinationTools,
        store: DecisionStore,
        histories: Mapping[TableName, LockHistory],
    ) -> None:
        super().__init__("lock coordinator", capacity=COORDINATOR_CAPACITY)
        self.locks: dict[int, TargetLock[TableName, ShardStatement]] = {}
        # The tracker's connection cannot be used: its session has the settings of statements.
        target = tools.meta.connection
        self._tools = GroupTools(
            tools.registry,
            tools.columns,
            tools.writer.mailbox,
            self.mailbox,
            tools.tracker,
            TargetVersions(target, histories, tools.moved),
            # Each change creates a new event.
            tools.writer.counts,
        )
        self._parents = WaitingParents(tools.registry, self.locks)
        self._earlier = EarlierVersions(store, self._tools.versions)
        self._registry = tools.registry
        self._writer = tools.writer
        self._runner = tools.writer.ddl
        self._store = store
        self._histories = histories
        self._units = tools.units
        self._sources = tuple(tools.setups)
        self._blocked = tools.blocked
        self._groups: dict[tuple[str, int], PessimisticGroup] = {}
        self._executing: set[int] = set()
        self._quiet = QuietLooks(self.mailbox)
        self._unreached = UnreachedCutovers(self.mailbox, tools.units, tools.writer)
        self._budget = HoldBudget(tools.writer.settings.batch_bytes // HELD_PART_OF_A_BATCH)
        # The positions up to which the groups of former runs have read.
        self._had_read: dict[tuple[str, int], Place] = {}
        self._conflicts: dict[int, Conflict[TableName, ShardStatement]] = {}
        self._jobs: anyio.abc.TaskGroup | None = None
        self._resolved = anyio.Event()
        self._log = structlog.get_logger()

    # The interface of a coordination.

    def make_group(self, unit: Unit, target: int) -> GroupActor:
        """Create the group of a target for a run of a source, and the other sources' groups."""
        if not self._registry.target_name(target).table:
            return DatabaseGroup(unit, target, self._registry, self._writer.mailbox, drops=False)
        new = target not in self.locks
        lock = self._lock(target)
        position = unit.state.position
        mark = unit.high_watermarks.get(target)
        moved, name = self._tools.versions.moved, lock.target
        # The events just before these positions are read again. The target already has the rows of
        # shards that a RENAME has moved to it, but they become members only when the RENAME is
        # read.
        until = moved.applied_until(unit.source, name, -1, lock.version) - 1
        applied = Place(max(until, moved.entered_until(unit.source, name)), 0)
        if mark is not None and mark.version == lock.version:
            applied = max(applied, mark.place)
        group = lock.start(
            unit.source,
            self._state(unit, target),
            boundary(position.binlog.key if position else 0),
            applied,
        )
        group.buffer = HoldBuffer(self._budget, lambda one, two: merged([one, two]))
        if new:
            for other in self._units.values():
                if other is not unit and other.running:
                    other.group(target)
        low = unit.low_watermarks.get(target)
        made = PessimisticGroup(unit.source, target, group, lock, low, self._tools, self._parents)
        self._groups[unit.source, target] = made
        return made

    def _state(self, unit: Unit, target: int) -> GroupState[TableName]:
        """Return the group's saved state; a new group starts at the version of its target."""
        saved = unit.state.groups.get(target)
        if saved is not None and saved.state is not None:
            return saved.state
        past = self._past(target)
        cutovers = past.cutovers.get(unit.source)
        base = cutovers[0].version - 1 if cutovers else len(past.history)
        numbers = saved.members if saved is not None else ()
        names = [self._registry.member(number).name for number, _ in numbers]
        members = ((name, MemberState(base, Place(0, 0))) for name in sorted(names))
        return GroupState(base, tuple(members))

    def _past(self, target: int) -> LockHistory:
        return self._histories.get(self._registry.target_name(target)) or LockHistory([])

    def began(self, unit: Unit) -> None:
        """Start all groups of a source with its run, including groups without members."""
        for target in {*unit.state.groups, *self.locks, *self._known_targets()}:
            unit.group(target)
            if target in self.locks:
                self.mailbox.tell(GroupChanged(target))

    async def before_restart(self) -> None:
        """Wait for locks that are being resolved.

        Sources may have held rows of these locks, too.
        """
        with anyio.move_on_after(GATHERING_SECONDS):
            while self._resolving:
                await self._resolved.wait()

    @property
    def _resolving(self) -> bool:
        """Whether locks are being decided or executed, or changes are not evaluated yet."""
        return len(self.mailbox) > 0 or any(
            lock.agreed or lock.may_execute
            for lock in self.locks.values()
            if lock.target not in self._blocked
        )

    async def ended(self, unit: Unit) -> None:
        """Stop the groups of a source; all events read are applied and saved."""
        self._parents.restarted(unit.source)
        for target, lock in self.locks.items():
            if (group := self._groups.pop((unit.source, target), None)) is not None:
                self._had_read[unit.source, target] = group.group.seen
                self._budget.remove(group.group.buffer)
                lock.stop(unit.source)

    def open_items(self, source: str) -> Collection[Place]:
        """Return the positions of a source's open items.

        The saved position is before all of them.
        """
        self._settle(source)
        groups = [lock.groups.get(source) for lock in self.locks.values()]
        return [at for group in groups if group is not None for at in group.open_items]

    def _settle(self, source: str) -> None:
        """Close the open items of a source whose released rows are applied."""
        passed = self._writer.tracker(source).passed
        for (of, _), group in self._groups.items():
            if of == source:
                group.held_rows.settle(passed)

    def open_targets(self, source: str) -> Collection[int]:
        """Return the targets (numbers) of the open items of a source."""
        groups = {target: lock.groups.get(source) for target, lock in self.locks.items()}
        return [target for target, group in groups.items() if group and group.open_items]

    def held(self) -> Mapping[TableName, HeldShards]:
        """Return the shards that are ahead of their target, or have items that it lacks."""
        for source in self._units:
            self._settle(source)
        return {lock.target: held_shards(lock) for lock in self.locks.values()}

    def gives_way(self, target: TableName, member: Member) -> bool:
        """Whether a shard was dropped whose target is dropped together with its last shard."""
        lock = self.locks.get(self._registry.target(target))
        group = lock.groups.get(member.source) if lock is not None else None
        return group is not None and member.name in group.dropped

    async def paths(self, own: Table, target: TableName) -> Sequence[ColumnPath]:
        """Return the paths from columns of a table to columns of a target."""
        lock = self._lock(self._registry.target(target))
        return await self._tools.versions.paths(lock, target, own)

    def _groups_of(self, target: int) -> dict[str, PessimisticGroup]:
        return {source: group for (source, t), group in self._groups.items() if t == target}

    def _known_targets(self) -> set[int]:
        recorded = set(map(self._registry.target, self._histories))
        return recorded | {n for n, name in self._registry.targets() if name.table}

    def _lock(self, target: int) -> TargetLock[TableName, ShardStatement]:
        lock = self.locks.get(target)
        if lock is None:
            past = self._past(target)
            lock = self.locks[target] = TargetLock(
                self._registry.target_name(target),
                self._sources,
                past.history,
                past.cutovers,
                past.pending,
                past.outside,
                past.earlier,
                past.shown,
            )
        return lock

    # The actor's loop.

    async def loop(self) -> None:
        """Process messages; items are executed in the background."""
        async with anyio.create_task_group() as jobs:
            self._jobs = jobs
            await super().loop()

    async def on_message(self, message: LockMessage) -> None:
        """Process a change of a group, or the operator's command to force a lock."""
        if isinstance(message, Unlock):
            await self._unlock(message)
        elif isinstance(message, TableAhead):
            assert self._jobs is not None
            target = self.locks[message.target].target
            await note_ahead(self._store.meta, self._tools.versions.moved, message, target)
            self._jobs.start_soon(self._wait_for_others, message)
        elif isinstance(message, EarlierItems) and not message.due:
            self._earlier.note(message)
        elif isinstance(message, EarlierItems):
            for source in sorted(await self._earlier.learn(message, self.locks[message.target])):
                self._units[source].restart()
        else:
            await self._advance(message.target, quiet=message.quiet)
        self._look_again()

    async def _wait_for_others(self, ahead: TableAhead) -> None:
        """Wait while a created table is ahead of its target; raise the fault if nothing changes."""
        lock, name = self.locks[ahead.target], ahead.member.name
        fault = ahead.fault
        while fault and ahead.group in lock.groups.values() and name in ahead.group.members:
            with anyio.move_on_after(OTHERS_SECONDS) as quiet:
                await self._resolved.wait()
            if lock.leads or lock.target in self._blocked:
                continue
            known = ahead.target, ahead.group, name
            if (due := self._earlier.due(*known, quiet=quiet.cancelled_caught)) is not None:
                self.mailbox.tell(due)
            elif quiet.cancelled_caught and not self._earlier.any_found(lock):
                raise fault

    def _look_again(self) -> None:
        # An anyio event cannot be cleared, so each change sets the event and creates a new one.
        self._resolved.set()
        self._resolved = anyio.Event()

    async def _advance(self, target: int, *, quiet: bool = False) -> None:
        """Decide agreed items and execute decided ones, as far as possible now."""
        lock = self.locks[target]
        assert self._jobs is not None
        if lock.target in self._blocked:
            return
        for unit in self._units.values():
            self._update(unit, target)
        if sources := lock.leave_out_truncations() or mark_later_items(self._registry, lock):
            for source in sorted(sources):
                self._units[source].restart()
            return
        if lock.late is not None:
            await self._decided(target, lock.resolve_late(self._resumes()))
        groups = self._groups_of(target).values()
        present = await self._tools.versions.at(lock, lock.version) if quiet else None
        if note_shown(self._registry, lock, groups, present) and not quiet:
            self._quiet.add(target, self._jobs, lambda: self._resolved)
        lock.look()
        self._watch_conflict(target, lock)
        if lock.agreed:
            await self._decided(target, lock.resolve(self._resumes()))
        self._unreached.watch(target, lock, self._jobs)
        if lock.may_execute and target not in self._executing:
            self._executing.add(target)
            self._jobs.start_soon(self._execute, target)

    async def _decided(
        self, target: int, resolution: Resolution[TableName, ShardStatement]
    ) -> None:
        name = self._registry.target_name(target)
        for group in self._groups_of(target).values():
            group.cutover_segment()
        reach(Failpoint.LOCK_AGREED)
        shard = self._before(resolution)
        before = await self._tools.versions.end(name, resolution.version - 1, shard)
        version, known = resolution.version, self.locks[target].shown
        shown = {key: numbers for key, numbers in known.items() if max(numbers) >= version}
        await self._store.decide(record_of(name, resolution, before, shown))
        reach(Failpoint.LOCK_DECIDED)
        self._log.info(
            "lock.decided",
            target=str(name),
            version=resolution.version,
            owner=resolution.owner,
            statement=resolution.item.statements[0][:2000],
            unlocked=resolution.resolved.unlocked,
            skipped=resolution.resolved.skipped,
        )

    def _before(self, resolution: Resolution[TableName, ShardStatement]) -> Table | None:
        """Return the structure of an item's shard before its statement; None if it is uncertain."""
        item = resolution.item
        number = self._registry.number(Member(resolution.owner, item.member))
        return (
            None if number is None else self._registry.held(number, item.at.transaction - 1).certain
        )

    async def _execute(self, target: int) -> None:
        lock = self.locks[target]
        resolution = lock.pending
        assert resolution is not None
        if not await self._older_rows_applied(target, lock):
            # The restarted source sends a message after it has passed its cutover again.
            self._executing.discard(target)
            return
        name = self._registry.target_name(target)
        if resolution.resolved.skipped:
            await self._store.pass_over(name, resolution.version)
        else:
            await self._run(target, lock, resolution)
        self._writer.forget(self._registry.target(name))
        lock.executed()
        self._executing.discard(target)
        self._log.info("lock.resolved", target=str(name), version=resolution.version)
        for source in self._parents.may_go_on():
            self._units[source].restart()
        for unit in self._units.values():
            self._update(unit, target)
        # The new evaluation also wakes tasks that wait for the lock.
        self.mailbox.tell(GroupChanged(target))

    async def _run(
        self,
        target: int,
        lock: TargetLock[TableName, ShardStatement],
        resolution: Resolution[TableName, ShardStatement],
    ) -> None:
        """Execute a decided item.

        If the item does not fit the foreign keys of other targets, it is executed again after they
        have changed.
        """
        name, attempts = self._registry.target_name(target), 0
        while True:
            changed = self._resolved
            # If the event was read again, it may have a newer override of the operator.
            item = lock.pending_item
            try:
                await self._runner.run_resolution(name, resolution, item)
                return self._parents.refused.discard(target)
            except FatalError as error:
                attempts += 1
                if not await self._may_help(name, item, error, attempts):
                    self._parents.refused.discard(target)
                    raise
            self._parents.refused.add(target)
            with anyio.move_on_after(UNREAD_SECONDS if attempts == 1 else None):
                await changed.wait()

    async def _may_help(
        self,
        target: TableName,
        item: Item[TableName, ShardStatement],
        error: FatalError,
        attempts: int,
    ) -> bool:
        """Whether changes of a target's parents or children may make it accept a refused item.

        The changes may come before the item in the binlog without having been read at the first
        attempt.
        """
        refusal = error.__cause__
        if not isinstance(refusal, DdlRefusedError) or refusal.code not in FOREIGN_KEY:
            return False
        if attempts == 1:
            # The changes may also have been executed since the refusal.
            return True
        context = item.event.statement.context
        own = classify_in(context, item.statements[0], default_schema=target.schema)
        named = [TableName(t.schema, t.table) for t in own.named(TableRole.REFERENCED)]
        tied = {*named, *await self._tools.versions.tied(target)} - {target}
        return self._parents.change(tied)

    async def _older_rows_applied(
        self, target: int, lock: TargetLock[TableName, ShardStatement]
    ) -> bool:
        """Wait for the rows forwarded before the cutovers; return False if some must be read again.

        A source may restart in the meantime, in the middle of a transaction.
        """
        while lock.may_execute:
            after = {
                source: (self._units[source].epoch, group.cutover_segment())
                for source, group in self._groups_of(target).items()
            }
            await self._writer.passed(after, positions=False)
            if all(self._units[source].epoch == epoch for source, (epoch, _) in after.items()):
                return lock.may_execute
        return False

    def _update(self, unit: Unit, target: int) -> None:
        """Make a source use the target's new version."""
        actor = self._groups.get((unit.source, target))
        if actor is None or unit.restarting or actor.group.known == self.locks[target].version:
            return
        group = actor.group
        if group.can_adopt:
            group.adopt()
        elif not actor.held_rows.asked and group.can_release:
            actor.held_rows.asked = True
            unit.release(target, group.buffer.size_of(group.known + 1))
        elif not actor.held_rows.asked:
            unit.restart()

    def _resumes(self) -> dict[str, Place]:
        return {source: self._writer.tracker(source).resume_at for source in self._units}

    # Commands of the operator.

    def open_locks(self) -> list[OpenLock]:
        """Return all open locks."""
        return [
            open_lock(lock, view)
            for lock in self.locks.values()
            if (view := lock.view()) is not None
        ]

    async def unlock(self, lock: str, *, owner: str, skip: bool, shard: str = "") -> None:
        """Force a lock, in its turn among the changes of groups. Raises UnlockError.

        Waits in two cases: the lock is the next one of a target whose lock is being resolved, or a
        restarted source has not read the lock's statements again.
        """
        with anyio.move_on_after(READ_AGAIN_SECONDS):
            while self._may_open(lock):
                # Rows do not change a lock, so no event is set when they have been read again.
                with anyio.move_on_after(READ_AGAIN_LOOK_SECONDS):
                    await self._resolved.wait()
        answers: list[UnlockError | None] = []
        answered = anyio.Event()

        def answer(error: UnlockError | None) -> None:
            answers.append(error)
            answered.set()

        self.mailbox.tell(Unlock(lock, owner, shard, skip, answer))
        await answered.wait()
        if answers[0] is not None:
            raise answers[0]

    def _may_open(self, lock: str) -> bool:
        """Whether a lock that is not open may still open."""
        if self._reads_again:
            return True
        resolving = (
            other.target
            for other in self.locks.values()
            if other.pending is not None and other.target not in self._blocked
        )
        its_target = any(lock.startswith(f"{name}:") for name in resolving)
        return its_target and all(lock != other.id for other in self.open_locks())

    @property
    def _reads_again(self) -> bool:
        """Whether a source will read statements again, or a group lacks its target's version."""
        return any(unit.restarting for unit in self._units.values()) or any(
            group.held_rows.asked or group.group.seen < self._had_read.get(of, group.group.seen)
            for of, group in self._groups.items()
            if self.locks[of[1]].target not in self._blocked
        )

    async def _unlock(self, message: Unlock) -> None:
        target = next(
            (
                number
                for number, lock in self.locks.items()
                if (view := lock.view()) and message.lock == lock_id(view)
            ),
            None,
        )
        if target is None:
            open_ids = ", ".join(lock.id for lock in self.open_locks()) or "none"
            message.answer(UnlockError(f"there is no lock {message.lock}; open locks: {open_ids}"))
            return
        if self.locks[target].target in self._blocked:
            name = self.locks[target].target
            message.answer(
                UnlockError(
                    f"{name} is blocked (`replicator resume TASK --target '{name}'` first), or is"
                    " being copied (wait until it is: `replicator status TASK`)"
                )
            )
            return
        try:
            resolution = self.locks[target].unlock(
                self._resumes(),
                owner=message.owner or None,
                member=self._shard(target, message),
                skip=message.skip,
            )
        except UnlockError as error:
            message.answer(error)
            return
        await self._decided(target, resolution)
        message.answer(None)
        await self._advance(target)

    def _shard(self, target: int, message: Unlock) -> TableName | None:
        """Return the shard that the operator named. Raises UnlockError."""
        if not message.shard:
            return None
        items = self.locks[target].candidates(message.owner)
        having = [item.member for item in items]
        found = next((name for name in having if str(name) == message.shard), None)
        if found is None:
            raise UnlockError(
                f"no shard {message.shard} of source {message.owner or '(none named)'} has a"
                f" statement for the lock; these have: {', '.join(map(str, having)) or 'none'}"
            )
        return found

    def _watch_conflict(self, target: int, lock: TargetLock[TableName, ShardStatement]) -> None:
        conflict = lock.conflict()
        if conflict is None:
            self._conflicts.pop(target, None)
        elif self._conflicts.get(target) != conflict:
            self._conflicts[target] = conflict
            self._log.error(
                "lock.conflict",
                target=str(self._registry.target_name(target)),
                version=conflict.version,
                ours=_claim(conflict.ours.source, conflict.ours.items[0].member),
                our_statements=[item.text for item in conflict.ours.items],
                theirs=_claim(conflict.theirs.source, conflict.theirs.items[0].member),
                their_statements=[item.text for item in conflict.theirs.items],
            )


def _claim(source: str, member: TableName) -> str:
    return f"{source}: {member}"
