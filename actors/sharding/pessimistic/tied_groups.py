"""The sharding groups of targets that foreign keys tie, as one group.

A row of the parent that is held, while its child's rows go on, would take children along that came
later in the shard. So tables that foreign keys connect are one member of one group: they have one
version, which an item of any of them increments, and are held together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from actors.faults import COPY_AGAIN, FatalError, of_target
from actors.lock_state import LockHistory
from actors.messages import GroupMessage, TargetSegment
from actors.sharding.group import GroupActor
from actors.sharding.pessimistic.group import PessimisticGroup, decide_together
from replicator.mysql.names import TableName
from replicator.sharding.items import GroupState


class TiedGroups(GroupActor):
    """Takes the parts of a segment for all targets of a family, and decides them together.

    ``groups`` by target, all with the same `replicator.sharding.pessimistic.group.Group`.
    """

    def __init__(self, groups: Mapping[int, PessimisticGroup]) -> None:
        head = next(iter(groups.values()))
        super().__init__(head.source, head.target, head.registry, head.writer, None)
        self._groups = groups
        self._parts: list[TargetSegment] = []
        numbers = {name: number for of in groups.values() for name, number in of.numbers.items()}
        for target, group in groups.items():
            group.tied_as = str(self.registry.target_name(target))
            group.numbers = numbers

    @property
    def version(self) -> int:
        """The version of the family that the groups know."""
        return self._groups[self.target].version

    async def on_message(self, message: GroupMessage) -> None:
        """Decide a segment when its last part is there; confirm a drain."""
        if not isinstance(message, TargetSegment):
            message.done.set()
            return
        self._parts.append(message)
        if message.more:
            return
        own, self._parts = self._parts, []
        self.segment = message.segment
        parts = [self._groups[part.target].without_copied(part) for part in own]
        decided = await decide_together(self._groups, parts)
        if any(part.saved is not None for part in decided):
            # The members of the other targets have changed along.
            for target in self._groups.keys() - {part.target for part in decided}:
                saved = self._groups[target].saved()
                empty = replace(decided[0], target=target, rows=None, ddl=None, renamed=False)
                self.writer.bring(replace(empty, saved=saved))
        for part in decided:
            self.writer.bring(part)


def untied_state(state: GroupState[TableName]) -> GroupState[TableName]:
    """The state of a group whose target no keys tie, though they may have."""
    alone = ((name, replace(member, target="", connected="")) for name, member in state.members)
    return replace(state, members=tuple(alone))


def tied_state(
    states: Mapping[TableName, GroupState[TableName]], *, applied: bool
) -> GroupState[TableName]:
    """The state of a family's group in a source, from what is saved of it by target.

    ``applied``: rows of the source may be on the targets. Raises FatalError where the targets
    did not come to what they are as a family.
    """
    bases = {state.base for state in states.values()}
    if len(bases) > 1 and applied:
        raise not_a_family(states)
    # The versions of a source that is new to the task: the newest item is that of one target.
    base = max(bases)
    members = (
        (name, replace(m, version=max(m.version, base), target=str(target)))
        for target, state in states.items()
        for name, m in state.members
    )
    return GroupState(base, tuple(sorted(members, key=lambda member: member[0])))


def not_a_family(family: Iterable[TableName]) -> FatalError:
    """Foreign keys tie targets whose schema changes were not coordinated as those of one family, or
    no longer tie some whose were."""
    names = ", ".join(map(str, sorted(family)))
    return FatalError(
        "target.keys-differ",
        f"foreign keys do not tie {names} as they did when the task coordinated their schema"
        " changes: the task does not know the order of these changes",
        COPY_AGAIN,
        where=f"targets {names}",
        scope=of_target(*family),
    )


def history_of(family: Sequence[TableName], past: Mapping[TableName, LockHistory]) -> LockHistory:
    """What was decided for a family, of which each item is an item of one target.

    Raises FatalError where its targets were not coordinated as one family.
    """
    of = [past[name] for name in family if name in past]
    done = sorted(
        (pair for one in of for pair in zip(one.versions, one.history, strict=True)),
        key=lambda pair: pair[0],
    )
    found = LockHistory([item for _, item in done], versions=[version for version, _ in done])
    found.pending = next((one.pending for one in of if one.pending is not None), None)
    for source, cutovers in ((s, c) for one in of for s, c in one.cutovers.items()):
        known = found.cutovers.get(source, [])
        found.cutovers[source] = sorted((*known, *cutovers), key=lambda cutover: cutover.version)
    versions, items = found.versions, found.history
    if found.pending is not None:
        versions, items = [*versions, found.pending.version], [*items, found.pending.resolved]
    tied = len(family) > 1
    gaps = versions != list(range(1, len(versions) + 1))
    if gaps or any(bool(item.target) != tied for item in items):
        raise not_a_family(family)
    return found
