"""Releases held rows, and saves the operator's answers to open statements."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial

import anyio

from actors.sharding.database_group import DatabaseGroup
from actors.sharding.group import GroupActor
from actors.sharding.optimistic.answers import OptimisticAnswers
from actors.sharding.optimistic.group import OptimisticGroup
from actors.sharding.optimistic.open_locks import helpful, refused_lock, statement_lock
from actors.sharding.shard_mode import (
    Coordination,
    CoordinationTools,
    OpenLock,
    Unit,
    Widening,
)
from replicator.downstream.meta.held_shards import HeldShards, all_held
from replicator.downstream.meta.reconciliations import queued_columns
from replicator.mysql.connection.asyncio_connection import DatabaseUnavailableError
from replicator.mysql.names import Member, TableName
from replicator.schema.effects.column_path import ColumnPath
from replicator.schema.structure.inspection import read_table
from replicator.schema.structure.structure import Table
from replicator.sharding.open_locks import DisputedError, UnlockError
from replicator.sharding.optimistic.alters import NoAlterError
from replicator.sharding.optimistic.conflicts import SETTLED
from replicator.sharding.optimistic.differences import Differences, against, differences_of
from replicator.sharding.optimistic.joined_table import joined_table, widening
from replicator.sharding.optimistic.shapes import NoJoinError, fits, shape_of
from replicator.sharding.optimistic.shard_states import (
    Action,
    OpenStatement,
    RefusedStep,
)
from replicator.watermark import Place

LOOK_SECONDS = 1.0
"""Seconds between two checks whether a delayed release is possible."""


class OptimisticCoordinator(Coordination):
    """Creates groups, releases held rows, and saves the operator's answers.

    A release is saved between two runs of its source. Then no rows are in flight, and all events
    read are applied and saved. So the position at which the version of the rows changes is known.
    """

    def __init__(
        self, tools: CoordinationTools, answers: OptimisticAnswers, *, drops_targets: bool
    ) -> None:
        self._answers = answers
        self._histories = answers.histories
        self._registry = tools.registry
        self._writer = tools.writer
        self._learner = tools.tracker
        self._units = tools.units
        self._blocked = tools.blocked
        self._groups: dict[tuple[str, int], OptimisticGroup] = {}
        self._stepping: list[RefusedStep[Member]] = []
        self._agreeing: dict[TableName, int] = {}
        self._drops_targets = drops_targets
        self._target = tools.meta.connection
        self._meta = tools.meta
        self._unreconciled: set[tuple[TableName, Member, Place]] = set()
        """The refused steps to try again when their targets are reconciled."""

    async def run(self) -> None:
        """Restart sources whose held rows may be applied."""
        self._unreconciled = {(name, step.member, step.at) for name, step in self._refused()}
        while True:
            with anyio.move_on_after(LOOK_SECONDS):
                await self._histories.changed.wait()
            for unit in self._units.values():
                if unit.running and not unit.restarting and any(self._due(unit)):
                    unit.restart()
            self._step_again()
            with suppress(DatabaseUnavailableError):
                await self._step_reconciled()
            self._agree()

    async def _step_reconciled(self) -> None:
        """Try refused steps again after reconciliations have given targets the shards' values."""
        for name, step in self._refused():
            place = name, step.member, step.at
            if step.action or name in self._blocked:
                continue
            if await queued_columns(self._target, self._meta, name):
                self._unreconciled.add(place)
            elif place in self._unreconciled:
                self._unreconciled.discard(place)
                run = partial(self._answers.steps.again, name, step)
                self._writer.step(self._registry.target(name), run)

    def _step_again(self) -> None:
        """Try the refused steps again that the operator has answered with ``exec``."""
        due = [(n, s) for n, s in self._refused() if s.action and n not in self._blocked]
        for name, step in due:
            if step not in self._stepping:
                run = partial(self._answers.steps.again, name, step)
                self._writer.step(self._registry.target(name), run)
        self._stepping = [step for _, step in due]

    def _agree(self) -> None:
        """Add the parts to targets on which all members agree."""
        for name, history in self._histories.by_target.items():
            tried = self._agreeing.get(name) == history.entries
            if history.lagging and not tried and name not in self._blocked:
                self._agreeing[name] = history.entries
                run = partial(self._answers.steps.agree, name)
                self._writer.step(self._registry.target(name), run)

    def _refused(self) -> Iterator[tuple[TableName, RefusedStep[Member]]]:
        for name, history in sorted(self._histories.by_target.items()):
            for step in history.refused_steps:
                if step.action is not Action.SKIP:
                    yield name, step

    def _due(self, unit: Unit) -> Iterator[tuple[TableName, dict[Member, Place]]]:
        """Yield each target that has answered statements of a source to release."""
        for name in self._histories.by_target:
            if name not in self._blocked and (due := self._answers.due(name, unit.source)):
                tracker = self._writer.tracker(unit.source)
                target = self._registry.target(name)
                low = tracker.low_watermarks.get(target)
                if tracker.high_watermarks.get(target) == low:
                    yield name, due

    def make_group(self, unit: Unit, target: int) -> GroupActor:
        """Create the group of a target for a run of a source."""
        name = self._registry.target_name(target)
        if not name.table:
            return DatabaseGroup(
                unit, target, self._registry, self._writer.mailbox, drops=self._drops_targets
            )
        group = self._groups[unit.source, target] = OptimisticGroup(
            unit.source,
            target,
            self._registry,
            self._writer.mailbox,
            self._histories.of(name).release(unit.source),
            unit.low_watermarks.get(target),
            self._answers,
            self._learner,
        )
        group.moved = self._answers.moved
        return group

    async def ended(self, unit: Unit) -> None:
        """Save the releases of a source, which has no rows in flight."""
        for source, target in tuple(self._groups):
            if source == unit.source:
                del self._groups[source, target]
        self._rejoin(unit)
        for name in tuple(self._histories.by_target):
            target = self._registry.target(name)
            low, high = (w.get(target) for w in (unit.low_watermarks, unit.high_watermarks))
            # If a bucket is ahead of another, the position at which versions change is unknown.
            if name in self._blocked or low != high:
                continue
            if due := self._answers.due(name, unit.source):
                applied = None if low is None else (low.version, low.place)
                await self._histories.release(name, unit.source, due, applied)

    def _rejoin(self, unit: Unit) -> None:
        """Restore the members of the saved position. The statements after it are read again."""
        for target, group in unit.state.groups.items():
            for number, _ in group.members:
                self._registry.join(
                    self._registry.member(number), self._registry.target_name(target)
                )

    # Open statements.

    def _open(self) -> Iterator[tuple[TableName, Member, OpenStatement]]:
        for name, history in sorted(self._histories.by_target.items()):
            for member, shard_state in sorted(history.state.members.items()):
                if shard_state.open is not None:
                    yield name, member, shard_state.open

    def open_items(self, source: str) -> Collection[Place]:
        """Return the positions of a source's open statements.

        The saved position is before all of them.
        """
        return [opened.at for _, member, opened in self._open() if member.source == source]

    def open_targets(self, source: str) -> Collection[int]:
        """Return the targets (numbers) of the open statements of a source."""
        return {
            self._registry.target(name)
            for name, member, _ in self._open()
            if member.source == source
        }

    def gives_way(self, target: TableName, member: Member) -> bool:
        """Whether a shard was dropped whose target is dropped together with its last shard."""
        history = self._histories.by_target.get(target)
        return history is not None and member in history.state.left

    async def paths(self, own: Table, target: TableName) -> Sequence[ColumnPath]:
        """Return the path of columns by their names if the target can store the rows of a table."""
        there = await read_table(self._target, target)
        try:
            # No row depends on an index that the table lacks.
            fit = there is not None and widening(there, [own]) is not None
        except (NoJoinError, NoAlterError):
            fit = False
        return ((),) if fit else ()

    def widening(self, own: Table, target: Table) -> Widening | None:
        """Return the change after which a target accepts rows of a table with this structure."""
        if fits(shape_of(own), shape_of(target)):
            return None
        try:
            sql = widening(target, [own])
            return Widening(sql, joined_table([target, own])) if sql else None
        except (NoJoinError, NoAlterError):
            return None

    def held(self) -> Mapping[TableName, HeldShards]:
        """Return the shards with open statements, and the shards whose rows their groups hold."""
        found: dict[TableName, list[HeldShards]] = {}
        for lock in self.open_locks():
            if lock.holds:
                held = HeldShards(shards=frozenset({lock.shard}), reason=lock.held_reason)
                found.setdefault(lock.view.target, []).append(held)
        for (_, target), group in self._groups.items():
            found.setdefault(self._registry.target_name(target), []).append(group.held)
        return {target: all_held(several) for target, several in found.items()}

    def open_locks(self) -> Sequence[OpenLock]:
        """Return a lock for each open statement and each refused step.

        The lock's id is the target.
        """
        sources = tuple(self._units)
        refused = (
            refused_lock(name, self._version(name, step.member) + 1, sources, step)
            for name, step in self._refused()
        )
        return [*(self._lock(*found) for found in self._open()), *refused]

    def _lock(self, name: TableName, member: Member, opened: OpenStatement) -> OpenLock:
        group = self._groups.get((member.source, self._registry.target(name)))
        unit = self._units.get(member.source)
        read = unit.state.position if unit is not None else None
        return statement_lock(
            name,
            self._version(name, member) + 1,
            tuple(self._units),
            self._histories.of(name).state,
            member,
            opened,
            held=group.rows_held[member] if group is not None else 0,
            position="" if read is None else str(read.binlog.with_key(opened.at.transaction)),
        )

    def _version(self, name: TableName, member: Member) -> int:
        return self._histories.of(name).version(member.source)

    def differences(self) -> Mapping[TableName, Differences[Member]]:
        """Return the targets whose members differ, and the differences."""
        histories = sorted(self._histories.by_target.items())
        behind = self._answers.steps.behind
        found = {
            # A part that was not tried yet is not a lasting difference.
            name: differences_of(
                h.state, h.agreed, h.changed - (h.lagging - behind.get(name, set()))
            )
            for name, h in histories
        }
        return {name: differences for name, differences in found.items() if differences}

    # Answers of the operator.

    async def unlock(self, lock: str, *, owner: str, skip: bool, shard: str = "") -> None:
        """Answer an open statement for the operator; return when the answer is saved.

        Raises:
            UnlockError: with a message for the operator.
            DisputedError: several statements are open, and the operator named none.
        """
        entries: list[tuple[TableName, Member, OpenStatement | RefusedStep[Member]]] = [
            *self._open(),
            *((name, step.member, step) for name, step in self._refused()),
        ]
        known = ", ".join(sorted({str(name) for name, *_ in entries})) or "none"
        entries = [found for found in entries if str(found[0]) == lock]
        if not entries:
            raise UnlockError(f"there is no lock {lock}; open locks: {known}")
        if entries[0][0] in self._blocked:
            raise UnlockError(
                f"{lock} is blocked (`replicator resume TASK --target '{lock}'` first), or is being"
                " copied (wait until it is: `replicator status TASK`)"
            )
        chosen = [
            (name, member, opened)
            for name, member, opened in entries
            if owner in ("", member.source) and shard in ("", str(member.name))
        ]
        if not chosen:
            having = ", ".join(str(member) for _, member, _ in entries)
            raise UnlockError(
                f"no such shard has an open statement of {lock}; these have: {having}"
            )
        # Prefer a statement that holds rows.
        holding = [found for found in chosen if isinstance(found[2], OpenStatement)]
        chosen = holding or chosen
        if len({member for _, member, _ in chosen}) > 1:
            raise DisputedError(f"several shards have open statements of {lock}")
        name, member, opened = chosen[0]
        action = Action.SKIP if skip else Action.EXEC
        if isinstance(opened, RefusedStep):
            if opened.action is not None:
                raise UnlockError(f"the task already tries the change of {member} again")
            await self._histories.save_answer(name, member, action, opened.at)
            return
        if opened.answered:
            raise UnlockError(f"the task already resolves the statement of {member}")
        fits = opened.conflict in SETTLED[action]
        if not fits or action in opened.unfit:
            others = against(self._histories.of(name).state, member, opened)
            raise UnlockError(
                f"{member}: {opened.unfit[action] if fits else opened.reason}."
                f" {action.value} can't resolve this. {helpful(member, opened, others)}"
            )
        await self._histories.save_answer(name, member, action)
