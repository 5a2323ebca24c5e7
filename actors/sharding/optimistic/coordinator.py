"""Releases: when held rows may be applied, and the operator's answers to open statements."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

import anyio

from actors.lock_state import ShardStatement
from actors.sharding.coordination import Coordination, CoordinationTools, LockRemedy, OpenLock, Unit
from actors.sharding.group import GroupActor
from actors.sharding.optimistic.answers import OptimisticAnswers
from actors.sharding.optimistic.group import OptimisticGroup
from actors.sharding.uncoordinated.mode import Uncoordinated
from replicator.binlog.segments.segment import Statement
from replicator.mysql.names import Member, TableName
from replicator.sharding.items import Item
from replicator.sharding.optimistic.answers import SETTLED
from replicator.sharding.optimistic.differences import Differences, differences_of
from replicator.sharding.optimistic.standings import (
    Action,
    Objection,
    OpenStatement,
    RefusedStep,
)
from replicator.sharding.pessimistic.lock import DisputedError, LockView, UnlockError
from replicator.watermark import Place

LOOK_SECONDS = 1.0
"""Seconds between two checks whether a delayed release is possible."""


class OptimisticCoordinator(Coordination):
    """Makes the groups, restarts sources whose held rows may be applied, and executes the
    operator's answers.

    A release is saved between two runs of its source, when no rows are in flight: everything that
    was read is applied and saved, so the position where its rows change their version is known.
    """

    def __init__(self, tools: CoordinationTools, answers: OptimisticAnswers) -> None:
        self._answers = answers
        self._registry = tools.registry
        self._writer = tools.writer
        self._units = tools.units
        self._blocked = tools.blocked
        self._groups: dict[tuple[str, int], OptimisticGroup] = {}
        self._stepping: list[RefusedStep[Member]] = []
        self._plain = Uncoordinated(tools.registry, tools.writer.mailbox, keep_databases=True)

    async def run(self) -> None:
        """Restart sources whose held rows may be applied."""
        while True:
            with anyio.move_on_after(LOOK_SECONDS):
                await self._answers.changed.wait()
            for unit in self._units.values():
                if unit.running and not unit.restarting and any(self._due(unit)):
                    unit.restart()
            self._step_again()

    def _step_again(self) -> None:
        """Have the writer make the refused steps that the operator lets it try again."""
        due = [(n, s) for n, s in self._refused() if s.action and n not in self._blocked]
        for name, step in due:
            if step not in self._stepping:
                run = partial(self._answers.step_again, name, step)
                self._writer.step(self._registry.target(name), run)
        self._stepping = [step for _, step in due]

    def _refused(self) -> Iterator[tuple[TableName, RefusedStep[Member]]]:
        for name, history in sorted(self._answers.histories.items()):
            for step in history.refused_steps:
                if step.action is not Action.SKIP:
                    yield name, step

    def _due(self, unit: Unit) -> Iterator[tuple[TableName, dict[Member, Place]]]:
        """The targets for which a source has open statements that have an answer by now."""
        for name in self._answers.histories:
            if name not in self._blocked and (due := self._answers.due(name, unit.source)):
                tracker = self._writer.tracker(unit.source)
                target = self._registry.target(name)
                low = tracker.low_watermarks.get(target)
                if tracker.high_watermarks.get(target) == low:
                    yield name, due

    def make_group(self, unit: Unit, target: int) -> GroupActor:
        """The group of a target in a run of a source."""
        name = self._registry.target_name(target)
        if not name.table:
            # Databases have no rows: their statements are executed in the order of the binlog.
            return self._plain.make_group(unit, target)
        group = self._groups[unit.source, target] = OptimisticGroup(
            unit.source,
            target,
            self._registry,
            self._writer.mailbox,
            self._answers.history(name).release(unit.source),
            unit.low_watermarks.get(target),
            self._answers,
        )
        return group

    async def ended(self, unit: Unit) -> None:
        """Save the releases of a source: everything that it read is applied, and no rows are in
        flight."""
        for source, target in tuple(self._groups):
            if source == unit.source:
                del self._groups[source, target]
        for name in tuple(self._answers.histories):
            target = self._registry.target(name)
            low, high = (w.get(target) for w in (unit.low_watermarks, unit.high_watermarks))
            # If a bucket is ahead of another, the position at which versions change is unknown.
            if name in self._blocked or low != high:
                continue
            if due := self._answers.due(name, unit.source):
                applied = None if low is None else (low.version, low.place)
                await self._answers.release(name, unit.source, due, applied)

    # What is open.

    def _open(self) -> Iterator[tuple[TableName, Member, OpenStatement]]:
        for name, history in sorted(self._answers.histories.items()):
            for member, standing in sorted(history.state.members.items()):
                if standing.open is not None:
                    yield name, member, standing.open

    def open_items(self, source: str) -> Collection[Place]:
        """The positions of a source's open statements: its saved position stays before all of
        them."""
        return [opened.at for _, member, opened in self._open() if member.source == source]

    def open_targets(self, source: str) -> Collection[int]:
        """The targets (numbers) of the open statements of a source."""
        return {
            self._registry.target(name)
            for name, member, _ in self._open()
            if member.source == source
        }

    def open_locks(self) -> Sequence[OpenLock]:
        """An entry for each open statement and each refused step; the id is that of its target."""
        return [
            *(self._lock(*found) for found in self._open()),
            *(self._refused_lock(*found) for found in self._refused()),
        ]

    def _lock(self, name: TableName, member: Member, opened: OpenStatement) -> OpenLock:
        target = self._registry.target(name)
        group = self._groups.get((member.source, target))
        held = group.rows_held[member] if group is not None else 0
        statement = Statement("", opened.sql, opened.at.transaction, opened.timestamp)
        resolving = opened.granted or opened.released or opened.action is not None
        view = self._view(name, member, opened.text, statement, held, resolving=resolving)
        return OpenLock(
            str(name),
            view,
            opened.timestamp or None,
            {member.source: opened.timestamp} if held and opened.timestamp else {},
            reason=f"{member}: {opened.reason}",
            ways=(*_ways(member, opened), *self._override(member, opened)),
        )

    def _refused_lock(self, name: TableName, step: RefusedStep[Member]) -> OpenLock:
        statement = Statement("", step.sql, step.at.transaction, step.timestamp)
        resolving = step.action is not None
        view = self._view(name, step.member, step.sql, statement, 0, resolving=resolving)
        return OpenLock(
            str(name),
            view,
            step.timestamp or None,
            reason=f"{step.member}: the target has refused the change, so it accepts more than its"
            f" shards; no rows are held: {step.reason}",
            ways=tuple(_step_ways(step)),
        )

    def _view(
        self,
        name: TableName,
        member: Member,
        text: str,
        statement: Statement,
        held: int,
        *,
        resolving: bool,
    ) -> LockView[TableName, ShardStatement]:
        at = Place(statement.transaction, 0)
        return LockView(
            target=name,
            version=self._answers.history(name).version(member.source) + 1,
            item=Item(text, (statement.sql,), member.name, at, ShardStatement(statement)),
            owner=member.source,
            ready=tuple(s for s in self._units if s != member.source),
            missing={},
            rows_held=held,
            conflict=None,
            resolving=resolving,
        )

    def _override(self, member: Member, opened: OpenStatement) -> Iterator[LockRemedy]:
        """The command that gives other statements, where neither exec nor skip may help."""
        unit = self._units.get(member.source)
        position = unit.state.position if unit is not None else None
        answers = _ANSWERS.get(opened.objection, {}).keys() - opened.unfit.keys()
        if position is None or (answers and opened.objection is not Objection.REFUSED):
            return
        if not (opened.granted or opened.released or opened.action is not None):
            yield LockRemedy(
                "`replicator binlog replace TASK 'STATEMENT' … --source"
                f" {shlex.quote(member.source)} --binlog-pos"
                f" {position.binlog.with_key(opened.at.transaction)}`, then `replicator pause"
                " TASK` and `replicator resume TASK`: these statements, written like the shard's"
                " own, take its place"
            )

    def differences(self) -> Mapping[TableName, Differences[Member]]:
        """The targets whose members are not alike, and in what."""
        histories = sorted(self._answers.histories.items())
        found = {name: differences_of(history.state) for name, history in histories}
        return {name: differences for name, differences in found.items() if differences}

    # The operator.

    async def unlock(self, lock: str, *, owner: str, skip: bool, shard: str = "") -> None:
        """Answer an open statement for the operator; returns when the answer is saved. Raises
        UnlockError, DisputedError where several are open and none was named.
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
        # What holds rows comes first.
        holding = [found for found in chosen if isinstance(found[2], OpenStatement)]
        chosen = holding or chosen
        if len({member for _, member, _ in chosen}) > 1:
            raise DisputedError(f"several shards have open statements of {lock}")
        name, member, opened = chosen[0]
        action = Action.SKIP if skip else Action.EXEC
        if isinstance(opened, RefusedStep):
            if opened.action is not None:
                raise UnlockError(f"the task already tries the change of {member} again")
            await self._answers.say(name, member, action, opened.at)
            return
        if opened.granted or opened.released or opened.action is not None:
            raise UnlockError(f"the task already resolves the statement of {member}")
        if opened.objection not in SETTLED[action]:
            raise UnlockError(
                f"{opened.reason}. {action.value} can't resolve this. {_helpful(member, opened)}"
            )
        if action in opened.unfit:
            raise UnlockError(
                f"{action.value} can't resolve this: {opened.unfit[action]}."
                f" {_helpful(member, opened)}"
            )
        await self._answers.say(name, member, action)


def _step_ways(step: RefusedStep[Member]) -> Iterator[LockRemedy]:
    """The remedies of a refused step."""
    if step.action is not None:
        yield LockRemedy("wait: the task tries it again")
        return
    texts = {
        Action.EXEC: "tries again, once the target's rows are corrected (change them in the"
        " shards; rows that no shard has, on the target)",
        Action.SKIP: "the target stays as it is",
    }
    for action, text in texts.items():
        yield LockRemedy(text, action.value, step.member.source, str(step.member.name))


def _ways(member: Member, opened: OpenStatement) -> Iterator[LockRemedy]:
    """The remedies of an open statement."""
    if opened.granted or opened.released or opened.action is not None:
        yield LockRemedy("wait: its rows are being read again")
        return
    if opened.objection in _FIRST and opened.structure is not None:
        yield LockRemedy(_FIRST[opened.objection])
    for action, text in _ANSWERS.get(opened.objection, {}).items():
        if action not in opened.unfit:
            yield LockRemedy(text, action.value, member.source, str(member.name))


def _helpful(member: Member, opened: OpenStatement) -> str:
    ways = [
        f"{way.action}: {way.text}" if way.action else way.text for way in _ways(member, opened)
    ]
    return f"What helps: {'; or '.join(ways) or '`replicator show-ddl-locks`'}"


_FIRST = {
    Objection.NAME: "run the statement on the other shards: the last one resolves it",
    Objection.TYPE: "make the column of the other shards like this one",
    Objection.STALE: "drop the column on the other shards: then it is added by itself",
    Objection.ROWS: "run the statement on the other shards: the last one resolves it",
}
"""What the operator can do in the shards."""
_VALUES = "give the shard's rows that are on the target the values that they have in the shard"
_FORMER = "the shard's older rows keep their former values in it"
_ROUNDED = (
    "the target follows; then give its older rows in this column the values that they have in"
    " their shards"
)
_ANSWERS = {
    Objection.NAME: {
        Action.EXEC: "the target gets the new column beside the old one, until no shard has that;"
        f" {_VALUES}",
    },
    Objection.TYPE: {
        Action.EXEC: "the target's column becomes this one; a value of other shards that does not"
        " fit pauses the target",
        Action.SKIP: "the target's column stays; a value of this shard that does not fit pauses"
        " the target, and a column that both compute has the target's values",
    },
    Objection.FILL: {
        Action.EXEC: f"rows without the column get this value from now on; {_VALUES}",
        Action.SKIP: f"the target's default stays; {_VALUES}",
    },
    Objection.STALE: {Action.EXEC: _FORMER, Action.SKIP: _FORMER},
    Objection.ROUNDED: {Action.EXEC: _ROUNDED, Action.SKIP: _ROUNDED},
    Objection.REFUSED: {
        Action.EXEC: "tries again, once the target or its rows are mended",
    },
}
"""What the operator's answers do."""
