"""The saved answers to the statements of each target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import anyio
import structlog
from pydantic import TypeAdapter

from actors.sharding.optimistic.open_locks import listed
from actors.sharding.shard_mode import WriterTools
from replicator.downstream.ddl.ddl_execution import DdlExecution, DdlRefusedError
from replicator.downstream.meta.answers import AnswerRecord, AnswerStore
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.moved_shards import Renaming
from replicator.failpoints import Failpoint, reach
from replicator.mysql.names import Member, TableName, folded
from replicator.schema.structure.inspection import read_table, read_tables
from replicator.schema.structure.structure import Table
from replicator.sharding.optimistic.answers import state_at_start
from replicator.sharding.optimistic.differences import against
from replicator.sharding.optimistic.fills import (
    Fill,
    fill_of,
    filled,
    without_formulas,
    without_values,
)
from replicator.sharding.optimistic.history import (
    EntryKind,
    HistoryEntry,
    TargetHistory,
    followed_entries,
)
from replicator.sharding.optimistic.shapes import joined_names
from replicator.sharding.optimistic.shard_states import Action, ShardState, TargetState, undoes
from replicator.watermark import Place

_ENTRY = TypeAdapter(HistoryEntry[Member])


def dump_entry(entry: HistoryEntry[Member]) -> str:
    """Return an entry as JSON."""
    return _ENTRY.dump_json(entry, exclude_defaults=True).decode()


def load_entry(text: str) -> HistoryEntry[Member]:
    """Return the entry from the output of `dump_entry`."""
    return _ENTRY.validate_json(text)


async def saved_histories(meta: MetaStore) -> dict[TableName, TargetHistory[Member]]:
    """Return the executed answers about each target. Raises DatabaseUnavailableError."""
    found: dict[TableName, TargetHistory[Member]] = {}
    for record in await AnswerStore(meta).load():
        if record.done:
            found.setdefault(record.target, TargetHistory()).take(load_entry(record.entry))
    return found


class AnswerHistories:
    """The history of each target, loaded at the start and updated with each answer.

    For the plans of rows, it also provides the values of columns that a member lacks.
    """

    def __init__(self, tools: WriterTools) -> None:
        self.by_target: dict[TableName, TargetHistory[Member]] = {}
        self.changed = anyio.Event()
        """Set, and replaced by a new event, when a statement is answered."""
        self._left: dict[tuple[TableName, Member], int] = {}
        self._undone: set[tuple[TableName, Member, Place]] = set()
        """The open statements that `follow_held` has accepted.

        It accepts each only once, since a statement may become open again for another reason.
        """
        self._reconciles = tools.reconciles
        self._registry = tools.registry
        self._target = tools.target
        self._executor = tools.executor
        self._store = AnswerStore(tools.meta)
        self._log = structlog.get_logger()

    def of(self, target: TableName) -> TargetHistory[Member]:
        """Return the history of a target."""
        return self.by_target.setdefault(target, TargetHistory())

    def take(self, target: TableName, entry: HistoryEntry[Member], at: int) -> None:
        """Apply the entry of a statement at a position."""
        self.of(target).take(entry)
        if entry.kind is EntryKind.LEFT:
            self._left |= {(target, member): at for member in entry.gone}

    def left_at(self, target: TableName, member: Member) -> int:
        """Return the position of the last statement by which a member left the target, or -1."""
        return self._left.get((target, member), -1)

    # The start.

    async def start(self, blocked: Iterable[TableName], renamings: Iterable[Renaming]) -> None:
        """Load the answers, finish an unfinished step, follow renamed targets, and add new members.

        Args:
            blocked: the targets to skip.
            renamings: all renamings of the task so far.
        """
        left_out = set(blocked)
        gone: dict[tuple[TableName, Member], int] = {}
        for record in await self._store.load():
            entry = load_entry(record.entry)
            if record.done or record.target in left_out or await self._finished(record, entry):
                self.take(record.target, entry, record.transaction)
                names = (*entry.gone, *(old for old, _ in entry.renamed))
                gone |= {(record.target, name): record.transaction for name in names}
        for renaming in renamings:
            for shard in renaming.moved:
                key = shard.former, shard.member
                gone[key] = max(gone.get(key, -1), shard.place)
            await self._follow(renaming)
        targets = [
            (number, target)
            for number, target in self._registry.targets()
            if target.table and target not in left_out
        ]
        await self._join_all(targets, gone)

    async def _follow(self, renaming: Renaming) -> None:
        """Move the members and the fills to renamed targets, unless this was done before."""
        moves = [
            (shard.member, shard.former, shard.target, Place(shard.place, 0))
            for shard in renaming.moved
        ]
        names = {name for _, former, target, _ in moves for name in (former, target)}
        if all(self.of(name).followed >= renaming.number for name in names):
            return
        entries = {
            name: await self._with_moved_fills(name, entry)
            for name, entry in followed_entries(renaming.number, moves, self.by_target).items()
        }
        await self._save(entries.items())
        for name, entry in entries.items():
            self.of(name).take(entry)

    async def _with_moved_fills(
        self, target: TableName, entry: HistoryEntry[Member]
    ) -> HistoryEntry[Member]:
        """Return an entry with the moved shards' fills for columns that only other members have."""
        if not {name for name, _ in entry.shard_states} - {name for name, _ in entry.begins}:
            return entry
        present = await read_table(self._target, target)
        _, first = entry.shard_states[0]
        state = TargetState(dict(entry.shard_states), entry.fills or {}, {})
        return replace(entry, fills=_present_fills(state, present, first))

    async def _finished(self, record: AnswerRecord, entry: HistoryEntry[Member]) -> bool:
        """Finish an unfinished step; return False if the target refuses it.

        A refused answer is revoked, and decided again when the statement is read again.
        """
        execution = DdlExecution(
            target=record.target,
            member=record.member,
            transaction=record.transaction,
            sql=entry.run[0] if len(entry.run) == 1 else "",
            change=None,
            timestamp=entry.timestamp,
            context=entry.context,
            instead=None if len(entry.run) == 1 else entry.run,
            shard_only=entry.shard_only,
            safe_sources=frozenset(entry.safe_sources),
        )
        try:
            await self._executor.execute(execution)
        except DdlRefusedError as error:
            self._log.info("ddl.refused-again", target=str(record.target), reason=str(error))
            return False
        return True

    async def _join_all(
        self,
        targets: Iterable[tuple[int, TableName]],
        gone: Mapping[tuple[TableName, Member], int],
    ) -> None:
        """Add the members without a saved state, with their current structures.

        Args:
            targets: the targets with their numbers.
            gone: by member, the position of the statement that dropped or renamed it. If the member
                begins before that position, the statement will be read again.
        """
        new: dict[TableName, list[Member]] = {}
        for number, target in targets:
            members = self.of(target).state.members
            for joined in self._registry.members_of(number):
                member, begins = self._registry.member(joined), self._begins(joined)
                if member not in members and gone.get((target, member), -1) < begins:
                    new.setdefault(target, []).append(member)
        present = await read_tables(self._target, [*new])
        entries = [
            (target, self._joined(target, member, present.get(target)))
            for target, members in new.items()
            for member in members
        ]
        if entries:
            await self._save(entries)

    def _joined(
        self, target: TableName, member: Member, present: Table | None
    ) -> HistoryEntry[Member]:
        """Apply the entry of a new member, and return it."""
        history, number = self.of(target), self._registry.number(member)
        assert number is not None
        # Use the structure at the start of the source: one that was read may include later
        # statements.
        held = self._registry.held(number, self._begins(number))
        structure = held.certain or _without_unknown_columns(present, held.structure)
        shard_state = state_at_start(history.state, structure)
        if shard_state.ceded:
            self._log.warning(
                "ddl.no-join",
                source=member.source,
                member=str(member.name),
                target=str(target),
                columns=sorted(shard_state.ceded),
            )
        fills = _present_fills(history.state, present, shard_state)
        entry = HistoryEntry(EntryKind.MEMBER, member, shard_state, fills)
        history.take(entry)
        return entry

    def _begins(self, member: int) -> int:
        return min(self._registry.places(member), default=0)

    async def _save(self, entries: Iterable[tuple[TableName, HistoryEntry[Member]]]) -> None:
        await self._store.add_all(
            [(target, entry.member, dump_entry(entry)) for target, entry in entries]
        )

    # Further entries.

    async def add(self, target: TableName, entry: HistoryEntry[Member]) -> None:
        """Save an entry without a statement to execute, and apply it."""
        await self._store.add(target, entry.member, dump_entry(entry))
        self.of(target).take(entry)

    async def release(
        self,
        target: TableName,
        source: str,
        due: Mapping[Member, Place],
        applied: tuple[int, Place] | None,
    ) -> None:
        """Release held rows of a source that has no rows in flight."""
        history = self.of(target)
        release = history.next_release(source, due, applied)
        first = min(due)
        entry = HistoryEntry(
            EntryKind.RELEASED, first, granted=tuple(due), source=source, release=release
        )
        reach(Failpoint.RELEASE_DUE)
        places = {member: at.transaction for member, at in due.items()}
        await self._store.release(target, first, dump_entry(entry), places)
        reach(Failpoint.RELEASE_SAVED)
        history.take(entry)
        self._log.info(
            "lock.released",
            source=source,
            target=str(target),
            version=release.number,
            members=[str(member.name) for member in due],
        )

    async def save_answer(
        self, target: TableName, member: Member, action: Action, at: Place | None = None
    ) -> None:
        """Save the operator's answer to an open statement, or to the refused step at ``at``."""
        await self.add(target, HistoryEntry(EntryKind.SAID, member, action=action, at=at))
        reach(Failpoint.UNLOCK_SAVED)
        self.wake_waiting()

    async def follow_held(self, target: TableName, member: Member, later: Table | None) -> None:
        """Accept a member's open statement if the member later drops or converts its columns.

        The member's rows are applied without these columns. The remaining columns are reconciled.

        Args:
            later: the member's structure after one of the waiting statements.
        """
        state = self.of(target).state
        opened = state.open_of(member)
        if not self._reconciles or opened is None or later is None:
            return
        if not undoes(state, member, later):
            return
        place = target, member, opened.at
        if place not in self._undone:
            self._undone.add(place)
            await self.save_answer(target, member, Action.SKIP)

    def wake_waiting(self) -> None:
        """Wake all tasks that wait for a change."""
        # An anyio event cannot be cleared, so each change sets the event and creates a new one.
        self.changed.set()
        self.changed = anyio.Event()

    def log_outcome(self, target: TableName, entry: HistoryEntry[Member]) -> None:
        """Log the outcome of a statement."""
        opened = entry.shard_state.open if entry.shard_state is not None else None
        if entry.kind is EntryKind.OPEN and opened is not None:
            self._log.warning(
                "ddl.open",
                source=entry.member.source,
                member=str(entry.member.name),
                target=str(target),
                statement=opened.sql[:2000],
                reason=opened.reason,
                others=listed(against(self.of(target).state, entry.member, opened)),
            )
        elif entry.kind is EntryKind.AGREED:
            self._log.info(
                "ddl.follows-shards", target=str(target), statement="; ".join(entry.run)[:2000]
            )
        elif entry.kind is EntryKind.TAKEN:
            self._log.info(
                "ddl.taken",
                source=entry.member.source,
                member=str(entry.member.name),
                target=str(target),
                statement="; ".join(entry.run)[:2000],
            )
        if entry.refusal is not None:
            self._log.warning(
                "ddl.stays-wider",
                source=entry.member.source,
                member=str(entry.member.name),
                target=str(target),
                reason=entry.refusal.reason,
            )

    # Rows.

    def writable_table(self, target: int, member: Member, structure: Table, table: Table) -> Table:
        """Return the target's table with the fills of the columns that the member lacks.

        If both compute a column and the member has ceded it, the target's formula stays, as the
        operator has answered. The member's values of a stale column are not used.
        """
        state = self.of(self._registry.target_name(target)).state
        own = {folded(column.name) for column in structure.columns}
        if (shard_state := state.members.get(member)) is not None:
            table = without_formulas(table, structure, shard_state.ceded)
            table = without_values(table, shard_state.stale & own)
        return filled(table, {n: fill for n, fill in state.fills.items() if n not in own})


def _without_unknown_columns(present: Table | None, guessed: Table | None) -> Table | None:
    """Return an uncertain structure with only the target's columns, as the target has them.

    The guessed structure may include columns of a statement that has not been read yet.
    """
    if present is None or guessed is None:
        return guessed
    columns = tuple(there for c in guessed.columns if (there := present.column(c.name)))
    return replace(guessed, columns=columns)


def _present_fills(
    state: TargetState[Member], present: Table | None, shard_state: ShardState
) -> Mapping[str, Fill]:
    """Return the fills at the start.

    In rows that lack a column, the value is the target's default.
    """
    fills = dict(state.fills)
    names = joined_names([*(s.taken for s in state.members.values()), shard_state.taken])
    for name in names - fills.keys():
        column = present.column(name) if present is not None else None
        if present is not None and column is not None:
            fills[name] = fill_of(present, column)
    return fills
