"""A member's statement, and the reasons why its rows don't fit the others' rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic

from replicator.mysql.names import folded
from replicator.schema.effects.touched_parts import Touched, column_part, name_of_column
from replicator.schema.structure.structure import Column, Table
from replicator.sharding.items import Name
from replicator.sharding.optimistic.column_order import comparable
from replicator.sharding.optimistic.fills import Fill, fill_of
from replicator.sharding.optimistic.shard_states import (
    Action,
    ConflictKind,
    ShardState,
    TargetState,
)
from replicator.watermark import Place


@dataclass(frozen=True, slots=True)
class Change(Generic[Name]):
    """A member's statement, as input of `answers.answer`.

    Attributes:
        text, form: compared with other members' (`compared_text`, `renaming_form`).
        before: the member's structure before the statement; None for a CREATE.
        after: the member's structure after it; None if unknown, for the reason in ``doubt``.
        found_by: the folded columns of the target's key that identifies rows; empty without a key,
            None if it is the shards' key.
        there: the fills of columns that the statement adds and that only the target already has.
        strict: whether the member's server refuses values that do not fit.
        settings: the settings of the member's session that affect the result.
        removes: the rows that the statement deletes (`removed_rows`); None for none.
        keeps_retired: whether the target keeps rows of retired shards.
        leaves_out: whether the statement may have removed rows that violate a key, a CHECK or the
            table's partitions.
        action: the operator's answer, if it was open before.
        reconciles: whether values that only the shards know are read from them.
    """

    member: Name
    at: Place
    text: str
    sql: str
    before: Table | None
    after: Table | None
    touched: Touched
    timestamp: int = 0
    found_by: frozenset[str] | None = None
    there: Mapping[str, Fill] = field(default_factory=dict)
    strict: bool = True
    settings: str = ""
    removes: str | None = None
    keeps_retired: bool = False
    leaves_out: bool = False
    action: Action | None = None
    doubt: str = ""
    form: str = ""
    reconciles: bool = False

    @property
    def recreated(self) -> frozenset[str]:
        """The columns that it drops and adds again."""
        return frozenset(map(name_of_column, self.touched.dropped & self.touched.added))


class ConflictError(Exception):
    """The statement can't be accepted; the text is the reason."""

    def __init__(self, conflict: ConflictKind, why: str, columns: Iterable[str] = ()) -> None:
        super().__init__(why)
        self.conflict = conflict
        self.columns = frozenset(columns)


class Conflicts(Generic[Name]):
    """Collects the settled conflicts of a statement, and raises the others.

    A conflict is settled by the operator's answer, or by reading the values from the shards.
    """

    def __init__(self, change: Change[Name]) -> None:
        self.action = change.action
        self.types: frozenset[str] = frozenset()
        self.fills: frozenset[str] = frozenset()
        self._change = change
        self._reconciled: dict[str, ConflictError | None] = {}

    def add(self, *conflicts: ConflictError | None) -> None:
        """Add conflicts. Raises ConflictError if one of them is not settled."""
        for found in conflicts:
            if found is not None:
                self._settle(found)

    def _settle(self, found: ConflictError) -> None:
        answered = self.action is not None and found.conflict in SETTLED[self.action]
        reconciles = self._change.reconciles and found.conflict in RECONCILED
        if not answered and not reconciles:
            raise found
        if reconciles:
            self._reconciled |= dict.fromkeys(found.columns, None if answered else found)
        if found.conflict is ConflictKind.TYPE:
            self.types |= found.columns
        elif found.conflict is ConflictKind.FILL:
            self.fills |= found.columns

    def reconciled(self, found_by: Collection[str]) -> frozenset[str]:
        """Return the columns to reconcile, by their names after the statement.

        Raises ConflictError if rows are found by one of them, unless the operator has answered.
        """
        names = dict(self._change.touched.pairs)
        for name, found in sorted(self._reconciled.items()):
            if found is not None and {name, names.get(name, name)}.intersection(found_by):
                raise found
        return frozenset(names.get(name, name) for name in self._reconciled)


SETTLED: Mapping[Action, frozenset[ConflictKind]] = {
    Action.EXEC: frozenset(ConflictKind) - {ConflictKind.ROWS, ConflictKind.RETIRED},
    Action.SKIP: frozenset(
        {ConflictKind.TYPE, ConflictKind.FILL, ConflictKind.STALE, ConflictKind.ROUNDED}
    ),
}
"""The conflicts that an answer of the operator can settle."""

RECONCILED = frozenset({ConflictKind.FILL, ConflictKind.STALE, ConflictKind.ROUNDED})
"""The conflicts that exist because older rows have other values on the target than in shards."""


def left_out(change: Change[Name]) -> ConflictError | None:
    """Return a conflict if the target may have rows that the shard has lost."""
    if not change.leaves_out:
        return None
    return ConflictError(
        ConflictKind.LEFT_OUT,
        "ALTER IGNORE has left out rows of the shard that break its unique key, CHECK or"
        " partitions, if there were any: they are still on the target",
    )


def other_values(
    former: ShardState, change: Change[Name], others: Iterable[Table]
) -> ConflictError | None:
    """Return a conflict if values change or move differently than in the tables ``others``."""
    assert change.after is not None
    touched = change.touched
    if touched.renamed:
        names = ", ".join(sorted(touched.renamed))
        had = {column_part(column.name) for table in others for column in table.columns}
        why = "other shards have not done this"
        if not had & touched.renamed:
            why = (
                "other shards have the new name already, or no such column: the rows of the target"
                " do not show where their values are"
            )
        return ConflictError(ConflictKind.NAME, f"it renames {names}, and {why}")
    if former.taken is None or change.before is None:
        return None
    for column in change.after.columns:
        old = change.before.column(column.name)
        if old is None:
            continue
        if old.generated != column.generated:
            why = f"it makes {column.name} a generated column, or no longer one"
            return ConflictError(ConflictKind.ROWS, why)
        # The target has already converted a ceded column to the type of the other members. A column
        # that is dropped and added again has no values to convert.
        apart = folded(column.name) in former.ceded | change.recreated
        if not apart and not comparable(old, column):
            return ConflictError(
                ConflictKind.TYPE,
                f"it converts the values of {column.name} ({old.type} to {column.type})"
                " differently from those of other shards",
                [folded(column.name)],
            )
    return None


def other_rows(
    state: TargetState[Name], former: ShardState, change: Change[Name]
) -> Iterator[ConflictError]:
    """Yield a conflict for each column in which existing rows differ from the target."""
    assert change.after is not None
    if change.before is None:
        return
    for column in change.after.columns:
        named = column_part(column.name) in change.touched.named
        if change.before.column(column.name) is None and not named:
            found = _other_fill(state, former, change.after, column)
            if found is not None:
                yield found
    if change.recreated:
        yield ConflictError(
            ConflictKind.STALE,
            f"it drops {', '.join(sorted(change.recreated))} and adds it again: its older rows on"
            " the target still have their former values",
            change.recreated,
        )
    yield from former_values(former, change)


def former_values(former: ShardState, change: Change[Name]) -> Iterator[ConflictError]:
    """Yield a conflict for each column that the member adds again.

    On the target, the member's older rows have former values in this column.
    """
    assert change.after is not None
    for column in () if change.before is None else change.after.columns:
        assert change.before is not None
        added = change.before.column(column.name) is None
        if added and (found := _stale_before(former, column)) is not None:
            yield found


def narrower(columns: Collection[str]) -> ConflictError:
    """Return the conflict if a narrower type may change values of these columns in one member."""
    return ConflictError(
        ConflictKind.ROUNDED,
        f"it makes {', '.join(sorted(columns))} narrower, which may have changed values of the"
        " shard's older rows: the target still has the values before that",
        columns,
    )


def comes_back(state: TargetState[Name], change: Change[Name]) -> bool:
    """Return whether a statement adds a column that the target has for a former shard's rows."""
    return change.before is not None and any(
        folded(column.name) in state.fills and change.before.column(column.name) is None
        for column in (() if change.after is None else change.after.columns)
    )


def _stale_before(former: ShardState, column: Column) -> ConflictError | None:
    name = folded(column.name)
    if name not in former.stale or column.generated:
        return None
    return ConflictError(
        ConflictKind.STALE,
        f"it adds {column.name} again, which it had dropped while other shards still have it:"
        " its older rows on the target still have their former values",
        [name],
    )


def _other_fill(
    state: TargetState[Name], former: ShardState, after: Table, column: Column
) -> ConflictError | None:
    name = folded(column.name)
    if (stale := _stale_before(former, column)) is not None:
        return stale
    if column.auto_increment:
        return ConflictError(
            ConflictKind.ROWS, f"it numbers its rows in {column.name}, and other shards do so, too"
        )
    fill, recorded = fill_of(after, column), state.fills.get(name)
    if recorded is None or column.generated:
        return None
    if fill.constant and fill.text == recorded.text:
        return None
    if fill.constant and recorded.constant:
        return ConflictError(
            ConflictKind.FILL,
            f"its older rows have {fill.sql} in the new column {column.name}, but on the target"
            f" {recorded.sql} (to avoid this, add the column with DEFAULT {recorded.sql}, then"
            " change the default)",
            [name],
        )
    theirs = recorded.sql if recorded.constant else "another value at each moment"
    return ConflictError(
        ConflictKind.FILL,
        f"its older rows have other values in the new column {column.name} than on the target,"
        f" where they have {theirs}",
        [name],
    )


_FORMER = "Older rows of shards have other values there on the target than in their shards"


def without_key(columns: Iterable[str], *, keyed: bool) -> ConflictError:
    """Return the conflict if rows can't be found by their values in these columns.

    The columns are in the target's key (``keyed``), or identify its rows together with all others.
    """
    return ConflictError(
        ConflictKind.ROWS,
        f"{_found_by(columns, keyed=keyed)}. {_FORMER}",
    )


def found_by_former(columns: Iterable[str], *, keyed: bool) -> ConflictError:
    """Return the conflict if rows would be found by columns whose values some shards changed.

    ``keyed`` as in `without_key`.
    """
    found = frozenset(columns)
    return ConflictError(
        ConflictKind.ROUNDED,
        f"{_found_by(found, keyed=keyed)}. {_FORMER}: correct them on the target before you answer",
        found,
    )


def without_fill(columns: Iterable[str], *, keyed: bool) -> ConflictError:
    """Return the conflict if rows of other shards can't be found by their values in a column.

    ``keyed`` as in `without_key`.
    """
    return ConflictError(
        ConflictKind.ROWS,
        f"{_found_by(columns, keyed=keyed)}. For rows of shards without the column, the task does"
        " not know exactly what they get there",
    )


def _found_by(columns: Iterable[str], *, keyed: bool) -> str:
    names = ", ".join(sorted(columns))
    if keyed:
        return f"the target's key includes {names}, and the task finds its rows by the key"
    return f"the target has no key, so all columns identify its rows, among them {names}"
