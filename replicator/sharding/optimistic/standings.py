"""Members: their taken structures, what is special about them, and the join of all. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Generic

from replicator.mysql.context.statement_context import NO_CONTEXT, StatementContext
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
    """It counts, and changes the target."""
    SKIP = "skip"
    """The target stays as it is; its member goes on."""


@dataclass(frozen=True, slots=True)
class OpenStatement:
    """A member's statement that was not taken. ``at`` is its position, ``reason`` says why.

    ``text`` and ``form`` are compared with those of other members; ``sql`` is what the operator
    sees, executed at ``timestamp`` by its source's clock. ``structure``: the member's after it.
    ``granted``: all members have made the statement, and the target has it. ``action``: the
    operator's answer. ``released``: its rows may flow, and it is answered anew when it is read
    again. ``unfit``: answers that can't resolve it, with the reason.
    """

    at: Place
    text: str
    sql: str
    objection: Objection
    reason: str
    structure: Table | None
    timestamp: int = 0
    granted: bool = False
    action: Action | None = None
    released: bool = False
    unfit: Mapping[Action, str] = field(default_factory=dict)
    form: str = ""

    def same(self, text: str, form: str) -> bool:
        """Whether a statement of another member, compared by these, is the same change."""
        return self.text == text or self.form == form != ""

    @property
    def answered(self) -> bool:
        """Whether what becomes of it is decided: it is answered anew when it is read again."""
        return self.granted or self.released or self.action is not None


@dataclass(frozen=True, slots=True)
class RefusedStep(Generic[Name]):
    """A step to a narrower structure, for a statement that was taken, which the target has refused
    for its rows: it stays wider.

    ``parts``: what it lacks (`Shape.parts`); once the join lacks all of it, too, nothing is left to
    do. ``at``, ``sql``, ``timestamp``, ``context``: the statement. ``action``: the operator's
    answer: the step is tried again.
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
class Standing:
    """A member: its taken structure (None where it is unknown), and exceptions.

    ``stale``: columns that it has dropped while others have them; its older rows keep their values.
    ``ceded``: columns that it has otherwise than the target, as the operator has said.
    """

    taken: Table | None
    stale: frozenset[str] = frozenset()
    ceded: frozenset[str] = frozenset()
    open: OpenStatement | None = None


class Objection(StrEnum):
    """Why a statement is open; this decides which answers the operator has."""

    NAME = "name"
    """It renames a column, or drops and adds it: its rows would have no column."""
    TYPE = "type"
    """Its column and that of others have no type in common, or their values are converted."""
    FILL = "fill"
    """Its rows get another value in a new column than those on the target."""
    STALE = "stale"
    """It adds a column again, of which the target still has the shard's former values."""
    ROUNDED = "rounded"
    """A narrower type may have changed a shard's values, and the target has the former ones; or
    rows are to be found by a column in which it has former ones."""
    ROWS = "rows"
    """Its rows could not be distinguished from those of others, or its effect is unknown."""
    LEFT_OUT = "left out"
    """It may have left out rows of the shard, which the target keeps (ALTER IGNORE)."""
    REFUSED = "refused"
    """The target has refused the change."""


@dataclass(frozen=True)
class TargetState(Generic[Name]):
    """All members of a target, and the fills of its columns by their folded names.

    ``left``: the accepted structures of members that have left, and were not created again. The
    target keeps what their rows need.
    """

    members: Mapping[Name, Standing] = field(default_factory=dict)
    fills: Mapping[str, Fill] = field(default_factory=dict)
    left: Mapping[Name, Table] = field(default_factory=dict)

    def joined(self) -> Shape | None:
        """The join of the members' taken structures; None where none is known."""
        return joined_beside(self.members.values(), self.left, self.fills)

    def without(self, gone: Collection[Name]) -> TargetState[Name]:
        """The state when these members have left."""
        taken = {n: s.taken for n, s in self.members.items() if n in gone and s.taken is not None}
        staying = {n: s for n, s in self.members.items() if n not in gone}
        return TargetState(staying, self.fills, {**self.left, **taken})

    def unfit_fill(self, before: Shape, after: Shape) -> str:
        """Why rows without a column would not keep their value there after a step to a narrower
        structure, behind which this is the state; empty if they do."""
        return unfit_column(before, after, self._tables(), self.fills)

    def unfindable(self, found_by: Collection[str]) -> frozenset[str]:
        """Those of some columns by which rows of members that lack them can't be found."""
        shape = self.joined()
        if shape is None:
            return frozenset()
        return unfindable(shape, found_by, self._tables(), self.fills)

    def _tables(self) -> Sequence[Table]:
        return [s.taken for s in self.members.values() if s.taken is not None]

    def open_of(self, member: Name) -> OpenStatement | None:
        """The open statement of a member, if it has one."""
        standing = self.members.get(member)
        return None if standing is None else standing.open


def joined(standings: Iterable[Standing], fills: Mapping[str, Fill]) -> Shape | None:
    """The join of taken structures; None where none is known. ``fills``: those of the target's
    columns. Raises NoJoinError."""
    return _joined(with_holders([*standings]), fills)


def joined_beside(
    standings: Iterable[Standing], left: Mapping[Name, Table], fills: Mapping[str, Fill]
) -> Shape | None:
    """The join of taken structures; if there is none, also with those of members that have left.

    A member without a unique key keeps the key from the target. When it leaves, the others may
    compare the key's columns by collations that have no join: the target stays as it is.
    """
    members = [*standings]
    try:
        return joined(members, fills)
    except NoJoinError:
        return joined([*members, *map(Standing, left.values())], fills)


def _joined(standings: Iterable[Standing], fills: Mapping[str, Fill]) -> Shape | None:
    shapes: dict[object, Shape] = {}
    for standing in standings:
        if standing.taken is None:
            continue
        shape = shape_of(standing.taken)
        if standing.ceded:
            columns = {n: c for n, c in shape.columns.items() if n not in standing.ceded}
            shape = replace(shape, columns=columns)
        shapes[shape.sense] = shape
    found = [shapes[sense] for sense in sorted(shapes, key=repr)]
    return join(found, {name for name, fill in fills.items() if fill.null}) if shapes else None


def with_holders(standings: Sequence[Standing]) -> Sequence[Standing]:
    """Standings that have ceded a column only where another member has it as the target does.

    Where that one has dropped it or left, the column is that of those that still have it, as far as
    there is a join of theirs.
    """
    given = frozenset().union(*(standing.ceded for standing in standings))
    if not given:
        return standings
    columns = [_columns(standing) for standing in standings]
    pairs = zip(standings, columns, strict=True)
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


def _columns(standing: Standing) -> Mapping[str, ShapeColumn]:
    return {} if standing.taken is None else shape_of(standing.taken).columns


def behind_open(standing: Standing) -> Standing:
    """A member after its open statement, which the target has executed for all."""
    assert standing.open is not None
    structure = standing.open.structure
    return Standing(structure) if structure is None else marked(standing, structure)


def marked(former: Standing, after: Table) -> Standing:
    """A member with another structure, whose older rows on the target are as they were."""
    own = shape_of(after).columns.keys()
    return Standing(after, former.stale.difference(own))
