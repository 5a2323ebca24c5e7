"""How members of one target differ from it, and on which parts they disagree."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic

from replicator.mysql.names import folded
from replicator.schema.effects.check_constraints import check_constraints
from replicator.sharding.items import Name
from replicator.sharding.optimistic.agreement import Part, PartKind, described_part
from replicator.sharding.optimistic.fills import fill_of
from replicator.sharding.optimistic.shapes import (
    NoJoinError,
    Shape,
    ShapeColumn,
    described,
    shape_of,
)
from replicator.sharding.optimistic.shard_states import (
    ConflictKind,
    OpenStatement,
    ShardState,
    TargetState,
    joined,
)


@dataclass(frozen=True, slots=True)
class Differences(Generic[Name]):
    """How the members of a target differ from it.

    Attributes:
        members: the differences of each member that has any.
        notices: differences between members that affect no rows and keep no statement open.
    """

    members: Mapping[Name, tuple[str, ...]]
    notices: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.members or self.notices)


def differences_of(
    state: TargetState[Name],
    agreed: Mapping[Part, str | None] | None = None,
    changed: Collection[Part] = (),
) -> Differences[Name]:
    """Return how the members of a target differ, by their accepted structures.

    Args:
        agreed: the parts that do not affect rows, with the values on which all members agree.
        changed: the parts in which the target may differ.
    """
    shape = state.joined()
    if shape is None:
        return Differences({}, ())
    found = {
        name: tuple(_of_member(state, shard_state, shape))
        for name, shard_state in sorted(state.members.items())
    }
    return Differences(
        {name: texts for name, texts in found.items() if texts},
        (*_defaults(state, shape), *_indexes(state), *_parts(agreed or {}, changed)),
    )


def against(state: TargetState[Name], member: Name, opened: OpenStatement) -> Sequence[Name]:
    """Return the members that keep a member's statement from being accepted.

    They have not made it, have a different column of the same name, or still have the column that
    it adds again.
    """
    own = state.members.get(member, ShardState(None))
    others = [(name, s) for name, s in sorted(state.members.items()) if name != member]
    match opened.conflict:
        case ConflictKind.NAME | ConflictKind.ROWS | ConflictKind.ROUNDED:
            same = {n for n, s in others if s.open and s.open.same(opened.text, opened.form)}
            return [name for name, _ in others if name not in same]
        case ConflictKind.TYPE:
            wanted = replace(own, taken=opened.structure)
            return [name for name, s in others if not _join([wanted, s])]
        case ConflictKind.STALE:
            return [
                n for n, s in others if s.taken and own.stale & shape_of(s.taken).columns.keys()
            ]
        case _:
            return []


def _join(shard_states: Sequence[ShardState]) -> bool:
    try:
        joined(shard_states, {})
    except NoJoinError:
        return False
    return True


def _of_member(state: TargetState[Name], shard_state: ShardState, shape: Shape) -> Iterator[str]:
    if shard_state.taken is None:
        return
    mine = shape_of(shard_state.taken)
    for name, wide in sorted(shape.columns.items()):
        own = mine.columns.get(name)
        if own is None:
            fill = state.fills.get(name)
            gets = f" (its new rows get {fill.sql})" if fill is not None and fill.constant else ""
            kept = " and has dropped it: older rows keep their values" * (name in shard_state.stale)
            yield f"lacks column {wide.column.name}{gets}{kept}"
        elif own.whole != wide.whole:
            way = own.sense == wide.sense
            there = _shown(wide, way=way)
            what = "is converted to" if name in shard_state.ceded else "on the target is"
            if name in shard_state.stale:
                what = "is left out until the shard drops it; on the target it is"
            here = _shown(own, way=way)
            yield f"column {own.column.name} {here} {what} {there}"
    for name in sorted(shard_state.stale - shape.columns.keys()):
        yield f"has dropped column {name}: older rows keep their values"
    for key in sorted(mine.constraints - shape.constraints, key=sorted):
        yield f"has a unique key ({', '.join(sorted(key))}), and the target lacks it"
    for name, _ in sorted(mine.indexes - shape.indexes):
        yield f"has an index {name}, and the target lacks it"
    for check in check_constraints(shard_state.taken):
        if check.form not in shape.checks:
            yield f"has CHECK {check.expression}, and the target lacks it"


def _shown(found: ShapeColumn, *, way: bool) -> str:
    column = found.column
    collation = f" COLLATE {column.collation}" if way else ""
    return f"{described(column)}{collation}{'' if column.nullable else ' NOT NULL'}"


def _defaults(state: TargetState[Name], shape: Shape) -> Iterator[str]:
    for name in sorted(shape.columns):
        found: dict[str, str] = {}
        for member, shard_state in sorted(state.members.items()):
            column = shard_state.taken.column(name) if shard_state.taken is not None else None
            if shard_state.taken is not None and column is not None and not column.generated:
                fill = fill_of(shard_state.taken, column)
                found.setdefault(fill.text, f"{fill.sql} in {member}")
        if len(found) > 1:
            one, other, *_ = found.values()
            yield f"the default of column {name} is {one}, and {other}"


def _parts(agreed: Mapping[Part, str | None], changed: Iterable[Part]) -> Iterator[str]:
    """Yield the parts in which members differ since a statement, except defaults."""
    for part in sorted(changed):
        if agreed[part] is not None:
            yield f"the target does not have the {described_part(part)} of all its shards yet"
        elif part[0] is not PartKind.DEFAULT:
            yield f"the {described_part(part)} is not the same in all shards"


def _indexes(state: TargetState[Name]) -> Iterator[str]:
    found: dict[str, dict[str, Name]] = {}
    for member, shard_state in sorted(state.members.items()):
        if shard_state.taken is not None:
            for name, text in shape_of(shard_state.taken).indexes:
                found.setdefault(folded(name), {}).setdefault(text, member)
    for name, texts in sorted(found.items()):
        if len(texts) > 1:
            (one, first), (other, second), *_ = texts.items()
            yield f"index {name} is `{one}` in {first}, and `{other}` in {second}"
