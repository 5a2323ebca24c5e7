"""`shard-mode: optimistic` and `""`: a change is accepted if all shards' rows still fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from actors.sharding.optimistic.answer_histories import dump_entry, load_entry, saved_histories
from actors.sharding.optimistic.answers import OptimisticAnswers
from actors.sharding.optimistic.coordinator import OptimisticCoordinator
from actors.sharding.shard_mode import (
    Coordination,
    CoordinationTools,
    ShardMode,
    WriterRules,
    WriterTools,
)
from replicator.downstream.meta.answers import AnswerStore
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.mysql.names import Member, TableName
from replicator.sharding.optimistic.fills import TargetFills
from replicator.sharding.optimistic.history import (
    EntryKind,
    HistoryEntry,
    MovedPlaces,
    moved_entries,
)


class OptimisticMode(ShardMode):
    """The mode in which no shard waits for another.

    Args:
        drops_targets: whether a target is dropped with its last shard, and a database with its last
            target.
    """

    joins_structures = True
    lets_shards_leave = True

    def __init__(self, *, drops_targets: bool) -> None:
        self.drops_targets = drops_targets

    def moved_entries(self, entries: Sequence[str], moves: MovedPlaces) -> Sequence[str]:
        """Return entries with the new server's positions of open statements and of held rows."""
        found = moved_entries(
            [*map(load_entry, entries)], lambda member: member.source == moves.source, moves
        )
        return [*map(dump_entry, found)]

    async def fills(self, meta: MetaStore) -> Mapping[TableName, TargetFills]:
        """Return the fills after all saved answers."""
        found = {}
        for name, history in (await saved_histories(meta)).items():
            members = history.state.members
            stale = (shard_state.stale for shard_state in members.values())
            taken = {
                member: shard_state.taken
                for member, shard_state in members.items()
                if shard_state.open is not None and shard_state.taken is not None
            }
            found[name] = TargetFills(history.state.fills, frozenset().union(*stale), taken)
        return found

    async def leave(self, meta: MetaStore, target: TableName, members: Iterable[Member]) -> None:
        """Save that shards leave with their open statements; the target still fits their rows."""
        gone = tuple(sorted(members))
        entry = HistoryEntry(EntryKind.LEFT, gone[0], gone=gone)
        await AnswerStore(meta).add(target, gone[0], dump_entry(entry))

    def writer_rules(self, tools: WriterTools) -> WriterRules:
        """Return the answers.

        The join rule decides each statement before it is executed on its target.
        """
        answers = OptimisticAnswers(tools, drops_targets=self.drops_targets)
        return WriterRules(answers, answers.histories)

    async def coordination(self, tools: CoordinationTools) -> Coordination:
        """Create the coordination from the saved answers, after finishing an unfinished step."""
        answers = tools.writer.ddl.rules
        assert isinstance(answers, OptimisticAnswers)
        answers.moved = tools.moved
        await answers.histories.start(tools.blocked, tools.moved.renamings)
        return OptimisticCoordinator(tools, answers, drops_targets=self.drops_targets)
