"""The answer to a member's statement: accepted, accepted with a step of the target, or open.

In pessimistic mode, the question is when all members have a statement. Here it is whether the
member's rows still fit the others' rows. The target's structure follows the join of the *accepted*
structures of all members; a member's accepted structure is the one after its last accepted
statement. If a statement can't be accepted, it is *open*: later rows of its member are held, and
all other rows are applied.

Each statement is answered once, when every row before it is applied and the watermarks are saved.
The answer is saved before anything is executed and before any later row of the member is applied.
So a row that is read again is below a watermark or fits the target's structure, and no step waits
for other steps.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Generic

from replicator.mysql.names import folded
from replicator.schema.effects.removed_rows import NO_ROWS
from replicator.schema.effects.touched_parts import column_part, name_of_column
from replicator.schema.structure.conversions import Fit, charset_conversion, conversion
from replicator.schema.structure.structure import Table
from replicator.sharding.items import Name
from replicator.sharding.optimistic.column_order import narrowed
from replicator.sharding.optimistic.conflicts import (
    SETTLED,
    Change,
    ConflictError,
    Conflicts,
    comes_back,
    former_values,
    found_by_former,
    left_out,
    narrower,
    other_rows,
    other_values,
    without_fill,
    without_key,
)
from replicator.sharding.optimistic.fills import Fill, fill_of
from replicator.sharding.optimistic.given_names import GivenName, given_names, with_former
from replicator.sharding.optimistic.partitions import gives_partitions, repartitioned
from replicator.sharding.optimistic.shapes import (
    NoJoinError,
    Shape,
    definitions,
    rounded_apart,
    shape_of,
    unfindable,
)
from replicator.sharding.optimistic.shard_states import (
    Action,
    ConflictKind,
    OpenStatement,
    ShardState,
    TargetState,
    after_open_statement,
    joined,
    joined_beside,
    marked,
)


class StatementAnswer(StrEnum):
    """The result for a statement."""

    TAKEN = "taken"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class JoinVerdict(Generic[Name]):
    """An answer.

    Attributes:
        shard_state: the member's state after the statement.
        before: the target's shape before the statement; None if unknown.
        after: the target's shape after the statement; None if unknown.
        own: whether the target executes the member's own statement; otherwise an ALTER is derived.
        fills: the fills of all columns.
        granted: members whose open statement is the same change.
        ceding: columns in which the other members yield, by the operator's answer.
        converted: columns that get the definition of this member.
        given: columns that get another name on the target, which may have them by both names before
            the statement.
        reconciled: columns in which older rows get the values of their shards.
    """

    answer: StatementAnswer
    shard_state: ShardState
    before: Shape | None = None
    after: Shape | None = None
    own: bool = False
    fills: Mapping[str, Fill] = field(default_factory=dict)
    granted: tuple[Name, ...] = ()
    ceding: frozenset[str] = frozenset()
    converted: frozenset[str] = frozenset()
    given: tuple[GivenName, ...] = ()
    reconciled: frozenset[str] = frozenset()

    @property
    def step(self) -> bool:
        """Whether the target is altered."""
        return self.answer is StatementAnswer.TAKEN and (
            self.own
            or bool(self.converted)
            or (self.before and self.before.sense) != (self.after and self.after.sense)
        )


def answer(state: TargetState[Name], change: Change[Name]) -> JoinVerdict[Name]:
    """Return the answer to a member's statement, or the new answer to an open one."""
    shard_state = state.members.get(change.member, ShardState(None))
    if shard_state.open is not None and shard_state.open.granted:
        now = state.joined()
        return JoinVerdict(
            StatementAnswer.TAKEN, replace(shard_state, open=None), now, now, fills=state.fills
        )
    former = _former(state, change)
    try:
        return _taken(state, former, change)
    except ConflictError as error:
        useless = _useless_answers(state, former, change, error.conflict)
        return left_open(state, change, error.conflict, str(error), useless)


def takeable(state: TargetState[Name], change: Change[Name]) -> bool:
    """Return whether an open statement can be accepted now."""
    opened = state.open_of(change.member)
    if opened is None:
        return False
    if opened.granted or opened.action is not None:
        return True
    try:
        _taken(state, _former(state, change), change)
    except ConflictError:
        return False
    return True


def _former(state: TargetState[Name], change: Change[Name]) -> ShardState:
    """Return the member's state before a statement."""
    former = replace(state.members.get(change.member, ShardState(None)), open=None)
    return former if former.taken is not None else replace(former, taken=change.before)


def _useless_answers(
    state: TargetState[Name], former: ShardState, change: Change[Name], conflict: ConflictKind
) -> Mapping[Action, str]:
    """Return the operator's answers that can't resolve a statement, with the reasons.

    Either another conflict remains, or a server may silently change values when it converts them.
    """
    others = [shard_state for name, shard_state in state.members.items() if name != change.member]
    own_former = {} if former.taken is None else {change.member: former.taken}
    target = joined_beside(others, {**state.left, **own_former}, state.fills)
    found: dict[Action, str] = {}
    for action in Action:
        if conflict not in SETTLED[action]:
            continue
        try:
            verdict = _taken(state, former, replace(change, action=action))
        except ConflictError as error:
            found[action] = str(error)
            continue
        for name in sorted(verdict.ceding or verdict.shard_state.ceded - former.ceded):
            own = change.after.column(name) if change.after is not None else None
            there = target.columns.get(name) if target is not None else None
            if own is None or own.generated or there is None:
                continue
            theirs = [c for s in others if s.taken is not None and (c := s.taken.column(name))]
            pairs = [(c, own) for c in theirs] if verdict.ceding else [(own, there.column)]
            for result in (f(*pair) for pair in pairs for f in (conversion, charset_conversion)):
                if result.fit is Fit.NONE:
                    found.setdefault(action, f"column {own.name}: {result.why}")
    return found


def left_open(
    state: TargetState[Name],
    change: Change[Name],
    conflict: ConflictKind,
    reason: str,
    unfit: Mapping[Action, str] | None = None,
) -> JoinVerdict[Name]:
    """Return the answer to a statement that can't be accepted.

    ``unfit``: the operator's answers that can't resolve it.
    """
    former = state.members.get(change.member, ShardState(None))
    opened = OpenStatement(
        change.at,
        change.text,
        change.sql,
        conflict,
        reason,
        change.after,
        change.timestamp,
        unfit=unfit or {},
        form=change.form,
    )
    taken = former.taken or change.before
    return JoinVerdict(
        StatementAnswer.OPEN, replace(former, taken=taken, open=opened), fills=state.fills
    )


def state_at_start(state: TargetState[Name], structure: Table | None) -> ShardState:
    """Return the state of a member that exists at the start.

    If a column can't be joined with the columns of the other members, it is ceded: the target's
    column follows the other members. The member's values are converted if the target never changes
    a value silently, that is, stores each value unchanged or refuses it.
    """
    shard_state = ShardState(structure)
    while True:
        try:
            joined([*state.members.values(), shard_state], state.fills)
        except NoJoinError as error:
            if error.column in shard_state.ceded:
                return shard_state
            shard_state = replace(shard_state, ceded=shard_state.ceded | {error.column})
        else:
            return shard_state


def settled(state: TargetState[Name], change: Change[Name]) -> JoinVerdict[Name]:
    """Return the answer if the operator has given a replacement for the statement.

    The target need not follow the member in columns that differ from the other members' columns.
    """
    verdict = answer(state, replace(change, action=Action.SKIP))
    if verdict.answer is StatementAnswer.TAKEN:
        return replace(verdict, own=False, converted=frozenset())
    columns = frozenset() if change.after is None else shape_of(change.after).columns.keys()
    shard_state = ShardState(change.after, ceded=frozenset(columns))
    return JoinVerdict(StatementAnswer.TAKEN, shard_state, fills=state.fills)


def _taken(state: TargetState[Name], former: ShardState, change: Change[Name]) -> JoinVerdict[Name]:
    """Return the answer to a statement that can be accepted. Raises ConflictError."""
    # In a column that no member has, the rows of all members have the target's default.
    state = replace(state, fills={**change.there, **state.fills})
    if change.after is None:
        why = f": {change.doubt}" if change.doubt else ""
        raise ConflictError(
            ConflictKind.ROWS, f"the effect of the statement on the shard is unknown{why}"
        )
    if change.keeps_retired and change.removes:
        why = "the target keeps rows of retired shards, which the statement would remove"
        raise ConflictError(ConflictKind.RETIRED, why)
    others = {name: s for name, s in state.members.items() if name != change.member}
    theirs = [shard_state.taken for shard_state in others.values() if shard_state.taken is not None]
    same = _same(others, change)
    left = _left(state, change)
    before = _target_before([*others.values(), former], [*left.values()], state)
    again = left.pop(change.member, None) is not None
    left = {name: shard_state for name, shard_state in left.items() if name not in same}
    conflicts = Conflicts(change)
    conflicts.add(left_out(change))
    alone = len(same) == len(others) and not comes_back(state, change)
    given = () if alone else _given(state, others, same, former, change, before)
    if alone or given:
        return _executed(
            state, {**left, **others}, former, change, before, conflicts, given, again=again
        )
    why = repartitioned(change.before, change.after, theirs, discards_rows=bool(change.removes))
    conflicts.add(ConflictError(ConflictKind.ROWS, why) if why else None)
    rows = tuple(other_rows(state, former, change))
    try:
        unsettled = [s.taken for name, s in others.items() if s.taken and name not in same]
        conflicts.add(other_values(former, change, unsettled))
        return _judged(state, {**left, **others}, former, change, before, conflicts, rows)
    except ConflictError as error:
        if not rows or change.reconciles or error.conflict is not ConflictKind.TYPE:
            raise
        # One answer of the operator settles both conflicts.
        text = f"{error}. Also, {rows[0]}"
        raise ConflictError(error.conflict, text, error.columns) from error


def _same(others: Mapping[Name, ShardState], change: Change[Name]) -> tuple[Name, ...]:
    """Return the other members whose open statement is the same change."""
    return tuple(
        name
        for name, s in others.items()
        if s.open is not None and not s.open.granted and s.open.same(change.text, change.form)
    )


def _given(
    state: TargetState[Name],
    others: Mapping[Name, ShardState],
    same: Collection[Name],
    former: ShardState,
    change: Change[Name],
    before: Shape | None,
) -> tuple[GivenName, ...]:
    """Return the renamed columns that each other member lacks or already has by the new name."""
    assert change.after is not None
    if narrowed(change.before, change.after, strict=change.strict):
        return ()
    if not change.touched.named or any(other_rows(state, former, change)):
        return ()
    found = given_names(
        change.touched,
        change.after,
        [former, *(others[name] for name in same)],
        [shard_state for name, shard_state in others.items() if name not in same],
        before,
        state,
        strict=change.strict,
        answered=change.action is Action.EXEC,
    )
    return () if any(one.unclear for one in found) and not change.reconciles else found


def _executed(
    state: TargetState[Name],
    others: Mapping[Name, ShardState],
    former: ShardState,
    change: Change[Name],
    before: Shape | None,
    conflicts: Conflicts[Name],
    given: tuple[GivenName, ...],
    *,
    again: bool,
) -> JoinVerdict[Name]:
    """Return the answer to a statement that all members that it concerns have made.

    If it renames a column, it concerns only the members with this column.

    It is executed unchanged, unless the target has the column by both names, or the statement
    creates a member ``again``.
    """
    assert change.after is not None
    same = _same(others, change)
    conflicts.add(*former_values(former, change))
    behind = {**others, **{name: after_open_statement(others[name]) for name in same}}
    own = replace(marked(former, change.after), ceded=frozenset())
    shard_state, together = _beside(state, change.member, behind, own, conflicts)
    if before is not None:
        before, together = with_former(before, given), with_former(together, given)
    known, found_by = _found_by(change, before, together)
    if same and change.reconciles and change.settings:
        # Their sessions may have had other settings.
        conflicts.add(narrower(set(map(name_of_column, change.touched.converted))))
    unclear = _stale([*behind.values(), shard_state]) & (found_by - known)
    keyed = together.identifies
    conflicts.add(found_by_former(unclear, keyed=keyed) if unclear else None)
    reconciled = conflicts.reconciled(known | found_by)
    reconciled |= {one.new for one in given if one.unclear}
    fills = _fills(state, change, executed=True)
    for one in given:
        # Rows of the others have the fill with which the column was added.
        fill = fills.pop(one.old, fills[one.new])
        fills[one.new] = fill if one.alike else fills[one.new]
    fills = {**_kept(fills, before, together)}
    ceding = conflicts.types if change.action is Action.EXEC else frozenset()
    moved = tuple(one for one in given if one.moves)
    return JoinVerdict(
        StatementAnswer.TAKEN,
        shard_state,
        before,
        together,
        change.removes != NO_ROWS and not again and not moved,
        fills,
        same,
        ceding=ceding,
        given=moved,
        reconciled=reconciled,
    )


def _left(state: TargetState[Name], change: Change[Name]) -> dict[Name, ShardState]:
    """Return the former members if a statement creates one of them again, or nothing.

    The target still has the parts that their rows need. The statement removes the parts that only
    this member needed.
    """
    if change.before is not None or change.member not in state.left:
        return {}
    return {name: ShardState(table) for name, table in state.left.items()}


def _target_before(
    members: Sequence[ShardState], left: Sequence[ShardState], state: TargetState[Name]
) -> Shape | None:
    """Return the target's shape.

    It is the join of the members and the given former members, if that exists, or else the join of
    the members.
    """
    try:
        return joined([*members, *left], state.fills)
    except NoJoinError:
        return joined_beside(members, state.left, state.fills)


def _judged(
    state: TargetState[Name],
    others: Mapping[Name, ShardState],
    former: ShardState,
    change: Change[Name],
    before: Shape | None,
    conflicts: Conflicts[Name],
    rows: Sequence[ConflictError],
) -> JoinVerdict[Name]:
    assert change.after is not None
    shape = shape_of(change.after)
    had = frozenset() if change.before is None else shape_of(change.before).columns.keys()
    there = {n for s in others.values() if s.taken is not None for n in shape_of(s.taken).columns}
    # The target keeps a column that only former members had.
    there |= former.stale - (frozenset() if before is None else before.columns.keys())
    stale = frozenset((former.stale | (had - shape.columns.keys())) & there - shape.columns.keys())
    touched = change.touched.converted
    kept = frozenset(
        n for n in former.ceded & shape.columns.keys() if column_part(n) not in touched
    )
    own_state = ShardState(change.after, stale | former.stale & kept, kept)
    shard_state, together = _beside(state, change.member, others, own_state, conflicts)
    undone = shard_state.ceded - former.ceded if _is_undone(state, change) else frozenset()
    shard_state = replace(shard_state, stale=shard_state.stale | undone)
    conflicts.add(*rows)
    rounded = rounded_apart(change.before, change.after, together, strict=change.strict)
    known, found_by = _found_by(change, before, together)
    keyed = together.identifies and change.found_by != frozenset()
    # A column that the operator has accepted in the key is no conflict to further statements.
    anew = stale - former.stale | rounded | undone
    if unclear := _stale([*others.values(), shard_state]) & (found_by - known) | anew & found_by:
        raise without_key(unclear, keyed=keyed)
    conflicts.add(narrower(rounded) if rounded else None)
    reconciled = conflicts.reconciled(known | found_by) | undone
    own = _is_own(state, before, together, change)
    fills = _fills(state, change, executed=own)
    exec_fills = conflicts.fills if change.action is Action.EXEC else frozenset()
    for column in change.after.columns:
        if folded(column.name) in exec_fills:
            fills[folded(column.name)] = fill_of(change.after, column)
    kept_fills = _kept(fills, before, together)
    tables = [s.taken for s in (*others.values(), shard_state) if s.taken is not None]
    without_value = unfindable(together, found_by, tables, kept_fills) - state.unfindable(known)
    # In columns of the key that only the target has, rows of shards have its default already.
    if without_value := without_value - (known - (before.columns.keys() if before else set())):
        raise without_fill(without_value, keyed=keyed)
    ceding = conflicts.types if change.action is Action.EXEC else frozenset()
    return JoinVerdict(
        StatementAnswer.TAKEN,
        shard_state,
        before,
        together,
        own and not ceding and not exec_fills,
        kept_fills,
        ceding=ceding,
        converted=ceding | exec_fills,
        reconciled=reconciled,
    )


def _is_undone(state: TargetState[Name], change: Change[Name]) -> bool:
    """Return whether a statement is accepted because its member later drops the new columns.

    The operator can't give this answer, since the values of the columns fit no type of the target.
    """
    opened = state.open_of(change.member)
    return opened is not None and opened.action is change.action and change.action in opened.unfit


def _beside(
    state: TargetState[Name],
    member: Name,
    others: Mapping[Name, ShardState],
    shard_state: ShardState,
    conflicts: Conflicts[Name],
) -> tuple[ShardState, Shape]:
    """Return the member's state and its join with the others, after the operator's answer."""
    rest = list(others.values())
    left = {name: table for name, table in state.left.items() if name != member}
    ceding = conflicts.types
    while True:
        if conflicts.action is Action.EXEC:
            # The column must be that of this member; otherwise it would be that of no member.
            shard_state = replace(shard_state, ceded=shard_state.ceded - ceding)
            rest = [replace(s, ceded=s.ceded | ceding) for s in rest]
        elif conflicts.action is Action.SKIP:
            shard_state = replace(shard_state, ceded=shard_state.ceded | ceding)
        try:
            together = joined_beside([*rest, shard_state], left, state.fills)
        except NoJoinError as error:
            found = ConflictError(ConflictKind.TYPE, str(error), [error.column])
            conflicts.add(found)
            if error.column in ceding:
                raise found from error
            ceding = ceding | found.columns
        else:
            assert together is not None
            return shard_state, together


def _found_by(
    change: Change[Name], before: Shape | None, together: Shape
) -> tuple[Set[str], Set[str]]:
    """Return the columns by whose values rows are found on the target, before and after."""
    if change.found_by == frozenset():
        return set() if before is None else before.columns.keys(), together.columns.keys()
    known = frozenset() if before is None else before.identifying
    # An operator may have created the target with a key over more columns than its shards have.
    more = (change.found_by or frozenset()) - known
    return known | more, together.identifying | more & together.columns.keys()


def _stale(shard_states: Iterable[ShardState]) -> frozenset[str]:
    """Return the columns in which older rows on the target have former values."""
    return frozenset().union(*(shard_state.stale for shard_state in shard_states))


def _kept(fills: Mapping[str, Fill], before: Shape | None, after: Shape) -> Mapping[str, Fill]:
    """Return the fills of the target's columns, also of columns that only a former shard had."""
    dropped = () if before is None else before.columns.keys() - after.columns.keys()
    return {name: fill for name, fill in fills.items() if name not in dropped}


def _fills(state: TargetState[Name], change: Change[Name], *, executed: bool) -> dict[str, Fill]:
    """Return the fills after a statement; `executed`: whether the target executes its text."""
    assert change.after is not None
    fills = dict(state.fills)
    for column in change.after.columns:
        name = folded(column.name)
        if name not in fills or (executed and name in change.recreated):
            fills[name] = fill_of(change.after, column)
    return fills


def _is_own(
    state: TargetState[Name], before: Shape | None, after: Shape, change: Change[Name]
) -> bool:
    """Return whether the member's own statement gives the target its new structure."""
    assert change.after is not None
    if change.before is None:
        return before is None
    if change.removes == NO_ROWS:
        return False
    others = [s.taken for name, s in state.members.items() if name != change.member]
    known = [taken for taken in others if taken is not None]
    if any(t.column(name) for t in (*known, *state.left.values()) for name in change.recreated):
        # The statement would remove the values of the other members.
        return False
    parted = gives_partitions(change.before, change.after, known)
    old, new = shape_of(change.before), shape_of(change.after)
    if parted is False or old.checks - new.checks:
        # The target may have the CHECKs by other names.
        return False
    if before is not None and before.sense != after.sense:
        return before.sense == old.sense and after.sense == new.sense
    if parted:
        return True
    # Rows do not depend on this part; the target gets it when all members are equal.
    return old.sense == new.sense and all(
        taken is not None and definitions(taken) == definitions(change.after) for taken in others
    )
