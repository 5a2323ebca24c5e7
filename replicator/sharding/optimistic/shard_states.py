"""The states of members: their accepted structures, their exceptions, and their join."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Generic

from replicator.mysql.session_context.statement_context import NO_CONTEXT, StatementContext
from replicator.schema.structure.structure import Table
from replicator.sharding.items import Name
from replicator.sharding.optimistic.fills import Fill
from replicator.sharding.optimistic.shapes import (
    NoJoinError,
    Shape,
    ShapeColumn,
    join,
    shape_of,
    unfindable,
    unfit_column,
)
from replicator.watermark import Place


class Action(StrEnum):
    """The operator's answer to an open statement."""

    EXEC = "exec"
    """The statement counts and changes the target."""
    SKIP = "skip"
    """The target is not changed; rows of the member are applied again."""


@dataclass(frozen=True, slots=True)
class OpenStatement:
    """A member's statement that was not accepted.

    Attributes:
        at: its position.
        text, form: compared with other members' statements.
        sql: the text displayed to the operator.
        reason: why it is open.
        structure: the member's structure after it.
        timestamp: when it was executed, by its source's clock.
        granted: whether all members have made the statement and the target has executed it.
        action: the operator's answer.
        released: whether its rows are applied, so that it is evaluated again when it is read again.
        unfit: answers that can't resolve it, with the reasons.
    """

    at: Place
    text: str
    sql: str
    conflict: ConflictKind
    reason: str
    structure: Table | None
    timestamp: int = 0
    granted: bool = False
    action: Action | None = None
    released: bool = False
    unfit: Mapping[Action, str] = field(default_factory=dict)
    form: str = ""

    def same(self, text: str, form: str) -> bool:
        """Return whether another member's statement with this text and form is the same change."""
        return self.text == text or self.form == form != ""

    @property
    def answered(self) -> bool:
        """Whether it is decided, and evaluated again when it is read again."""
        return self.granted or self.released or self.action is not None


@dataclass(frozen=True, slots=True)
class RefusedStep(Generic[Name]):
    """A step to a narrower structure that the target has refused because of its rows.

    The statement was accepted; the target stays wider.

    Attributes:
        at, sql, timestamp, context: the statement.
        parts: the parts that it removes (`Shape.parts`); the step is finished when the join has
            none of them either.
        action: the operator's answer, after which the step is retried.
    """

    member: Name
    at: Place
    sql: str
    reason: str
    parts: frozenset[str]
    timestamp: int = 0
    context: StatementContext = NO_CONTEXT
    action: Action | None = None


@dataclass(frozen=True, slots=True)
class ShardState:
    """The state of a member: its accepted structure, and exceptions.

    Attributes:
        taken: the accepted structure; None if unknown.
        stale: columns in which older rows on the target do not have the shard's values. Either the
            member has dropped them while others have them, or their type does not fit and the
            member drops them later.
        ceded: columns in which it differs from the target, by the operator's answer.
        open: its open statement, if any.
    """

    taken: Table | None
    stale: frozenset[str] = frozenset()
    ceded: frozenset[str] = frozenset()
    open: OpenStatement | None = None


class ConflictKind(StrEnum):
    """The reason why a statement is open, which decides the operator's possible answers."""

    NAME = "name"
    """The statement renames a column, so the shard's rows would have no column on the target."""
    TYPE = "type"
    """The shard's column and the other members' column have no common type.

    Or their values are converted.
    """
    FILL = "fill"
    """In a new column, the shard's older rows have another value than on the target."""
    STALE = "stale"
    """The shard adds a column that it has dropped; the target still has the former values."""
    ROUNDED = "rounded"
    """A narrower type may have changed a shard's values, and the target has the former ones; or a
    column with former values would identify rows."""
    ROWS = "rows"
    """The shard's rows would look like other members' rows, or the effect is unknown."""
    RETIRED = "retired"
    """The statement would remove rows of retired shards."""
    LEFT_OUT = "left out"
    """The statement may have removed rows of the shard that the target keeps (ALTER IGNORE)."""
    REFUSED = "refused"
    """The target has refused the change."""


@dataclass(frozen=True)
class TargetState(Generic[Name]):
    """All members of a target, and the fills of its columns by their folded names.

    ``left``: the accepted structures of members that have left and were not created again. The
    target keeps the parts that their rows need.
    """

    members: Mapping[Name, ShardState] = field(default_factory=dict)
    fills: Mapping[str, Fill] = field(default_factory=dict)
    left: Mapping[Name, Table] = field(default_factory=dict)

    def joined(self) -> Shape | None:
        """Return the join of the members' accepted structures; None if none is known."""
        return joined_beside(self.members.values(), self.left, self.fills)

    def without(self, gone: Collection[Name]) -> TargetState[Name]:
        """Return the state after these members have left."""
        taken = {n: s.taken for n, s in self.members.items() if n in gone and s.taken is not None}
        staying = {n: s for n, s in self.members.items() if n not in gone}
        return TargetState(staying, self.fills, {**self.left, **taken})

    def unfit_fill(self, before: Shape, after: Shape) -> str:
        """Return why rows without a column would lose their value there by a narrowing step.

        This is the state after the step. The result is empty if the rows keep their value.
        """
        return unfit_column(before, after, self._tables(), self.fills)

    def unfindable(self, found_by: Collection[str]) -> frozenset[str]:
        """Return the columns by which rows of members that lack them can't be found."""
        shape = self.joined()
        if shape is None:
            return frozenset()
        return unfindable(shape, found_by, self._tables(), self.fills)

    def _tables(self) -> Sequence[Table]:
        return [s.taken for s in self.members.values() if s.taken is not None]

    def open_of(self, member: Name) -> OpenStatement | None:
        """Return the open statement of a member, if it has one."""
        shard_state = self.members.get(member)
        return None if shard_state is None else shard_state.open


def undoes(state: TargetState[Name], member: Name, later: Table) -> bool:
    """Return whether a member reverts the types of its open statement.

    It does so by dropping the columns that the statement only adds, or by converting them to types
    that join with the other members' types.

    ``later``: its structure after one of the statements that wait for the open one.
    """
    shard_state, opened = state.members[member], state.open_of(member)
    if opened is None or opened.structure is None or opened.answered:
        return False
    if opened.conflict is not ConflictKind.TYPE or Action.SKIP not in opened.unfit:
        return False
    made, taken = opened.structure.columns, shard_state.taken
    added = [c for c in made if taken is not None and taken.column(c.name) is None]
    kept = tuple(column for column in made if column not in added)
    dropped = [column for column in made if later.column(column.name) is None]
    if dropped:
        return taken is not None and kept == taken.columns and dropped == added
    others = [other for name, other in state.members.items() if name != member]
    with suppress(NoJoinError):
        joined([*others, ShardState(later)], state.fills)
        return True
    return False


def joined(shard_states: Iterable[ShardState], fills: Mapping[str, Fill]) -> Shape | None:
    """Return the join of accepted structures; None if none is known.

    ``fills``: by column of the target. Raises NoJoinError.
    """
    return _joined(with_holders([*shard_states]), fills)


def joined_beside(
    shard_states: Iterable[ShardState], left: Mapping[Name, Table], fills: Mapping[str, Fill]
) -> Shape | None:
    """Return the join of accepted structures, adding former members' structures if there is none.

    If a member has no unique key, the target has none. When that member leaves, the others may
    compare the key's columns by collations that have no join. The join with the former members then
    does not change the target.
    """
    members = [*shard_states]
    try:
        return joined(members, fills)
    except NoJoinError:
        return joined([*members, *map(ShardState, left.values())], fills)


def _joined(shard_states: Iterable[ShardState], fills: Mapping[str, Fill]) -> Shape | None:
    shapes: dict[object, Shape] = {}
    for shard_state in shard_states:
        if shard_state.taken is None:
            continue
        shape = shape_of(shard_state.taken)
        if shard_state.ceded:
            columns = {n: c for n, c in shape.columns.items() if n not in shard_state.ceded}
            shape = replace(shape, columns=columns)
        shapes[shape.sense] = shape
    found = [shapes[sense] for sense in sorted(shapes, key=repr)]
    return join(found, {name for name, fill in fills.items() if fill.null}) if shapes else None


def with_holders(shard_states: Sequence[ShardState]) -> Sequence[ShardState]:
    """Return the states with a column ceded only while another member has the target's column.

    If that member has dropped the column or left, the column is defined by the members that still
    have it, if their columns have a join.
    """
    given = frozenset().union(*(shard_state.ceded for shard_state in shard_states))
    if not given:
        return shard_states
    columns = [_columns(shard_state) for shard_state in shard_states]
    pairs = zip(shard_states, columns, strict=True)
    found = [replace(s, ceded=frozenset(s.ceded & c.keys())) for s, c in pairs]
    for name in sorted(given):
        having = [n for n, own in enumerate(columns) if name in own]
        if any(name not in found[n].ceded for n in having):
            continue
        for number in sorted(having, key=lambda n: repr(columns[n][name].sense)):
            taken_back = [*found]
            taken_back[number] = replace(found[number], ceded=found[number].ceded - {name})
            with suppress(NoJoinError):
                _joined(taken_back, {})
                found = taken_back
    return found


def _columns(shard_state: ShardState) -> Mapping[str, ShapeColumn]:
    return {} if shard_state.taken is None else shape_of(shard_state.taken).columns


def after_open_statement(shard_state: ShardState) -> ShardState:
    """Return a member's state after its open statement, which the target has executed for all."""
    assert shard_state.open is not None
    structure = shard_state.open.structure
    return ShardState(structure) if structure is None else marked(shard_state, structure)


def marked(former: ShardState, after: Table) -> ShardState:
    """Return a member's state with another structure; its older rows are unchanged."""
    own = shape_of(after).columns.keys()
    return ShardState(after, former.stale.difference(own))
