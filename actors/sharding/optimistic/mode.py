"""`shard-mode: optimistic`: a schema change is accepted if its rows fit together with those of
others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from actors.sharding.coordination import (
    Coordination,
    CoordinationTools,
    ShardMode,
    WriterRules,
    WriterTools,
)
from actors.sharding.optimistic.answer_histories import dump_entry, load_entry, saved_histories
from actors.sharding.optimistic.answers import OptimisticAnswers
from actors.sharding.optimistic.coordinator import OptimisticCoordinator
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
    """The mode in which no shard waits for another."""

    joins_structures = True
    lets_shards_leave = True

    def moved_entries(self, entries: Sequence[str], moves: MovedPlaces) -> Sequence[str]:
        """An open statement has a position, and a release has those from which rows are held."""
        found = moved_entries(
            [*map(load_entry, entries)], lambda member: member.source == moves.source, moves
        )
        return [*map(dump_entry, found)]

    async def fills(self, meta: MetaStore) -> Mapping[TableName, TargetFills]:
        """As the answers have left them."""
        found = {}
        for name, history in (await saved_histories(meta)).items():
            members = history.state.members
            stale = (standing.stale for standing in members.values())
            taken = {
                member: standing.taken
                for member, standing in members.items()
                if standing.open is not None and standing.taken is not None
            }
            found[name] = TargetFills(history.state.fills, frozenset().union(*stale), taken)
        return found

    async def leave(self, meta: MetaStore, target: TableName, members: Iterable[Member]) -> None:
        """They leave with their open statements; the target keeps what their rows need."""
        gone = tuple(sorted(members))
        entry = HistoryEntry(EntryKind.LEFT, gone[0], gone=gone)
        await AnswerStore(meta).add(target, gone[0], dump_entry(entry))

    def writer_rules(self, tools: WriterTools) -> WriterRules:
        """The answers: the rule decides each statement when it reaches its target."""
        answers = OptimisticAnswers(tools)
        return WriterRules(answers, answers.histories)

    async def coordination(self, tools: CoordinationTools) -> Coordination:
        """The coordination, with the saved answers; an unfinished step is finished first."""
        answers = tools.writer.ddl.rules
        assert isinstance(answers, OptimisticAnswers)
        answers.moved = tools.moved
        await answers.histories.start(tools.blocked, tools.moved.renamings)
        return OptimisticCoordinator(tools, answers)
