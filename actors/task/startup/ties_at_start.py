"""The targets that foreign keys tie, as a generation finds them at its start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

import pymysql.err

from actors.faults import COPY_AGAIN, FatalError, Parts, TransientError, of_target
from actors.sharding.coordination import TiedTargets
from actors.task.resources.resources import Resources
from actors.task.startup.check_scope import task_to_check
from actors.task.startup.source_start import SourceStart
from actors.task_setup import address_of
from replicator.checks.schema.agreement import Obstacle, Shard
from replicator.checks.schema.structures import read_shards
from replicator.checks.schema.tied_tables import (
    TargetKeys,
    Ties,
    has_acting_keys,
    logs_cascades,
    ties_of,
)
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import Member, TableName
from replicator.schema.registry.registry import SchemaRegistry

_LATEST = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class TiesAtStart:
    """``referenced`` and ``obstacles`` as in `replicator.checks.schema.tied_tables.Ties`;
    ``logging``: the sources that log what their foreign keys change; ``unlogged``: those that were
    asked for their keys and do not log it; ``tied``: which targets, and which of their shards, keys
    connect; ``keys``: those of these targets."""

    referenced: Mapping[TableName, frozenset[str]] = field(default_factory=dict)
    obstacles: Mapping[TableName, Obstacle] = field(default_factory=dict)
    logging: frozenset[str] = frozenset()
    unlogged: frozenset[str] = frozenset()
    tied: TiedTargets = field(default_factory=TiedTargets)
    keys: Mapping[TableName, TargetKeys] = field(default_factory=dict)

    def with_blocked(self, blocked: Parts) -> Parts:
        """What does not go on: where a tied target does not, nor do those that it is tied to."""
        if blocked.targets & self.referenced.keys():
            return Parts(blocked.targets | self.referenced.keys(), blocked.sources)
        return blocked

    def connect(self, source: str, start: SourceStart, registry: SchemaRegistry) -> SourceStart:
        """A start with what foreign keys connect in the states of its groups: as it was saved,
        since tables may have got other names, or as the server has it.

        Raises FatalError where neither tells.
        """
        groups = dict(start.groups)
        for family in (family for family in self.tied.families if len(family) > 1):
            numbers = [n for n in map(registry.target, family) if n in groups]
            states = {n: state for n in numbers if (state := groups[n].state) is not None}
            members = {name: m.connected for s in states.values() for name, m in s.members}
            present = {name: self.tied.connected.get(Member(source, name)) for name in members}
            saved = {present[name]: text for name, text in members.items() if text}
            for number, state in states.items():
                labels = {
                    n: members[n] or saved.get(present[n]) or present[n] for n, _ in state.members
                }
                unknown = [name for name, text in labels.items() if not text]
                if unknown:
                    raise _unconnected(Member(source, unknown[0]), family)
                connected = ((n, replace(m, connected=labels[n] or "")) for n, m in state.members)
                state = replace(state, members=tuple(connected))
                groups[number] = replace(groups[number], state=state)
        return replace(start, groups=groups)

    def confirm(self, registry: SchemaRegistry) -> None:
        """Raise FatalError where a member is followed whose keys act, and can't be tied.

        One that gets such a key by a statement that is yet to be read is told of there.
        """
        for number, name in registry.targets():
            if name in self.referenced:
                continue
            for member in registry.members_of(number):
                structure = registry.held(member, _LATEST).structure
                keys = structure.definition.foreign_keys if structure is not None else ()
                if not any(key.acts for key in keys):
                    continue
                shard = registry.member(member)
                if name in self.obstacles:
                    raise _not_tied(name, f"{shard}", self.obstacles[name])
                if shard.source in self.unlogged:
                    raise _not_tied(name, f"{shard}", _gone(shard))


def _gone(shard: Member) -> Obstacle:
    return Obstacle(
        f"{shard} had these foreign keys where the task stopped reading, and the server has none of"
        " them now, so rows may have changed by keys that the task can no longer compare",
        COPY_AGAIN,
    )


def _unconnected(member: Member, family: Iterable[TableName]) -> FatalError:
    return FatalError(
        "target.keys-differ",
        f"{member} was renamed or dropped before the task first read the foreign keys of its"
        " source: the task does not know which tables they connected it with",
        COPY_AGAIN,
        where=f"{member}, targets {', '.join(map(str, sorted(family)))}",
        scope=of_target(*family),
    )


def _not_tied(name: TableName, member: str, obstacle: Obstacle) -> FatalError:
    way_out = obstacle.way_out
    if way_out != COPY_AGAIN:
        way_out = way_out.rstrip(";") + (
            "; `replicator stop`, then `replicator run`"
            if obstacle.in_task_file
            else "; then `replicator resume`"
        )
    return FatalError(
        "target.keys-differ",
        f"foreign keys change rows of {member} without writing that to the binlog, and the target"
        f" can't make the same changes to the rows of {name}: {obstacle.what}",
        way_out,
        "if the application changes the child's rows itself, before those of the parent:"
        " ignore-checking-items: [foreign_keys] in the task file; `replicator stop`, then"
        " `replicator run`",
        where=f"{member}, target {name}",
        scope=of_target(name),
    )


async def _saved(resources: Resources, shards: Sequence[Shard]) -> list[Shard]:
    """Of shards that the servers have now those that the saved state has; of a source that nothing
    is saved of, all."""
    found: dict[str, set[Member]] = {}
    for source in {shard.member.source for shard in shards}:
        if (checkpoint := await resources.meta.load(source)) is not None:
            found[source] = {record.member for record in checkpoint.members}
    return [s for s in shards if s.member in found.get(s.member.source, (s.member,))]


async def ties_at_start(resources: Resources, left_out: Set[str]) -> TiesAtStart:
    """The ties of the targets, by all sources but those ``left_out``.

    Raises DatabaseUnavailableError or TransientError.
    """
    if any(setup.accepts_cascades for setup in resources.setups.values()):
        return TiesAtStart()
    task = await task_to_check(resources.task)
    sources = tuple(s for s in task.sources if s.source_id not in left_out)
    target = Connection(address_of(resources.task.target_database))
    try:
        unlogged = frozenset([s.source_id for s in sources if not await logs_cascades(s)])
        if not any([await has_acting_keys(s) for s in sources if s.source_id in unlogged]):
            return TiesAtStart(unlogged=unlogged)
        task = replace(task, sources=sources)
        shards = await read_shards(task)
        ties: Ties = await ties_of(task, target, shards)
        if ties.obstacles:
            # One that is not read yet is told of at its CREATE TABLE, with the ways out of there.
            known = {n: of for n, every in shards.items() if (of := await _saved(resources, every))}
            before = await ties_of(task, target, known)
            ties = before if before.referenced.keys() > ties.referenced.keys() else ties
    except pymysql.err.MySQLError as error:
        raise TransientError(f"foreign keys can't be read: {error}") from error
    finally:
        target.close()
    logging = {s.member.source for of in shards.values() for s in of if s.logs_cascades}
    tied = TiedTargets(ties.families, ties.connected)
    return TiesAtStart(
        ties.referenced, ties.obstacles, frozenset(logging), unlogged, tied, ties.keys
    )
