"""The net effect of a run of row events: one change to write for each key.

The target's row key identifies rows. An update that changes the key is a delete and an insert. For
each key and shard, only the first and the last event count: the first shows whether the shard had a
row before, the last whether it has one now. So the writes of different keys commute, unless a table
has further unique keys: then all old rows are deleted before any new one is written. Tables without
a usable key are multisets of rows: only the number of added or removed copies of a row counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from replicator.downstream.rows.target_columns import HeldKey, Restated, TargetColumn
from replicator.downstream.rows.writing import NetChanges
from replicator.mysql.names import Member
from replicator.pipeline.plans.plan import TablePlan
from replicator.rows.decoder.row_block import RowChange

INSERT, DELETE = int(RowChange.INSERT), int(RowChange.DELETE)
"""Changes as plain numbers, because they are compared for every row."""

Entry = tuple[int, int, bytes | None, bytes | None, bytes | None, bytes | None]
"""(event number, change, key before, key after, row before, row after) of one row."""


class DuplicateKeyError(Exception):
    """Two shards have a row with the same key. ``key`` is the key's line."""

    def __init__(self, key: bytes, members: tuple[Member, ...]) -> None:
        super().__init__(f"{' and '.join(map(str, members))} both hold the key {key!r}")
        self.key = key
        self.members = members


class _Row:
    """The effect of a batch on one key.

    The state in one shard, and in other shards if there are any.
    """

    __slots__ = ("existed", "first", "first_plan", "line", "others", "plan")

    def __init__(
        self, plan: TablePlan, existed: bool, first: bytes | None, line: bytes | None
    ) -> None:
        self.plan = self.first_plan = plan
        self.existed = existed
        self.first = first
        self.line = line
        self.others: dict[Member, tuple[TablePlan, bytes | None]] | None = None


def net_effect(
    entries: Iterable[Entry],
    plan_of: Callable[[int], TablePlan],
    safe: Callable[[int], bool],
) -> list[NetChanges]:
    """Return the changes for one bucket of one target; one item per list of written columns.

    A key of an event in safe mode is written in safe mode; if several shards have the key, the last
    row is written. Raises DuplicateKeyError if several shards have any other key.

    Args:
        entries: in the order of arrival.
        plan_of: returns the plan of an event, by the event's number.
        safe: returns whether an event is in safe mode: the target may lack rows, or have later
            ones.
    """
    rows: dict[bytes, _Row] = {}
    counts: dict[TablePlan, dict[bytes, int]] = {}
    safe_keys: set[bytes] = set()
    current = -1
    for event, change, old_key, new_key, before, after in entries:
        if event != current:
            current, plan = event, plan_of(event)
            keyed = bool(plan.rows.key)
            lenient = keyed and safe(event)
        if lenient:
            safe_keys.update(key for key in (old_key, new_key) if key is not None)
        if not keyed:
            _count(counts, plan, before, after)
        elif change == INSERT:
            assert new_key is not None
            _note(rows, new_key, plan, False, None, after)
        elif change == DELETE:
            assert old_key is not None
            _note(rows, old_key, plan, True, before, None)
        else:
            assert old_key is not None
            assert new_key is not None
            if old_key == new_key:
                _note(rows, new_key, plan, True, before, after)
            else:
                _note(rows, old_key, plan, True, before, None)
                _note(rows, new_key, plan, False, None, after)
    groups = _Groups()
    for key, row in rows.items():
        _add_row(groups, key, row, key in safe_keys)
    for plan, multiset in counts.items():
        _add_multiset(groups.of(plan), plan.member, multiset)
    return groups.changes()


class _Lists:
    """The rows of `NetChanges`, while they are collected."""

    __slots__ = (
        *("arrivals", "deletes", "inserts", "members", "overwrites", "removals"),
        *("renewed", "shared", "upserts"),
    )

    def __init__(self) -> None:
        self.deletes: list[bytes] = []
        self.removals: dict[bytes, int] = {}
        self.overwrites: list[bytes] = []
        self.shared: list[bytes] = []
        self.upserts: list[bytes] = []
        self.arrivals: list[bytes] = []
        self.inserts: list[bytes] = []
        self.members: list[Member] = []
        self.renewed = 0


_Identity = tuple[
    tuple[TargetColumn, ...],
    tuple[TargetColumn, ...],
    bool,
    tuple[tuple[str, Restated], ...],
    tuple[tuple[str, str], ...],
    tuple[HeldKey, ...],
]
"""The attributes that rows written together have in common, as in `NetChanges`."""


class _Groups:
    """Changes, grouped by the columns that they write."""

    def __init__(self) -> None:
        self._by_plan: dict[int, _Lists] = {}
        self._by_columns: dict[_Identity, _Lists] = {}

    def of(self, plan: TablePlan) -> _Lists:
        """Return the group in which a plan's rows are written."""
        found = self._by_plan.get(id(plan))
        if found is None:
            keyed = plan.target_columns, plan.key_columns
            its = plan.target.filled, plan.target.held
            identity = (*keyed, plan.covers, plan.restated, *its)
            found = self._by_columns.setdefault(identity, _Lists())
            self._by_plan[id(plan)] = found
        return found

    def changes(self) -> list[NetChanges]:
        return [
            NetChanges(*identity, **{name: getattr(found, name) for name in _Lists.__slots__})
            for identity, found in self._by_columns.items()
        ]


def _note(
    rows: dict[bytes, _Row],
    key: bytes,
    plan: TablePlan,
    existed: bool,
    before: bytes | None,
    after: bytes | None,
) -> None:
    row = rows.get(key)
    if row is None:
        rows[key] = _Row(plan, existed, before, after)
        return
    if plan is row.plan or plan.member == row.plan.member:
        row.plan = plan
        row.line = after
        return
    # Another shard had this key in the batch: keep its state separately, in the order of arrival.
    if row.others is None:
        row.others = {}
    mine = row.others.pop(plan.member, None)
    if mine is None and existed and not row.existed:
        row.existed, row.first, row.first_plan = True, before, plan
    row.others[row.plan.member] = (row.plan, row.line)
    row.plan, row.line = plan, after


def _add_row(groups: _Groups, key: bytes, row: _Row, safe_mode: bool) -> None:
    plan, line = row.plan, row.line
    shared = False
    if row.others:
        holders = [(p, text) for p, text in row.others.values() if text is not None]
        if line is not None:
            holders.append((plan, line))
        shared = len(holders) > 1
        if shared and not safe_mode:
            raise DuplicateKeyError(key, tuple(p.member for p, _ in holders))
        plan, line = holders[-1] if holders else (plan, None)
    group = groups.of(plan)
    if line is None:
        if row.existed or safe_mode:
            group.deletes.append(key)
    elif safe_mode:
        group.upserts.append(line)
        if shared:
            # The target has none of these rows yet, and gets one of them.
            group.shared.append(key)
        elif row.others or not row.existed:
            group.arrivals.append(key)
    elif not row.existed:
        group.inserts.append(line)
        group.members.append(plan.member)
    elif line == row.first and plan.target_columns == row.first_plan.target_columns:
        pass  # Changed and changed back, or moved unchanged: the row is already on the target.
    elif plan.target.replace and not _narrower(row.first_plan, plan):
        group.overwrites.append(line)
    else:
        group.deletes.append(key)
        group.inserts.append(line)
        group.members.append(plan.member)
        group.renewed += 1


def _narrower(first: TablePlan, last: TablePlan) -> bool:
    """Whether a row has moved to a shard that lacks columns in which it had values.

    In these columns the row gets the values of every new row of that shard, not its former ones.
    """
    moved = first.member != last.member and not last.covers
    return moved and first.target_columns != last.target_columns


def _count(
    counts: dict[TablePlan, dict[bytes, int]],
    plan: TablePlan,
    before: bytes | None,
    after: bytes | None,
) -> None:
    multiset = counts.setdefault(plan, {})
    if before is not None:
        multiset[before] = multiset.get(before, 0) - 1
    if after is not None:
        multiset[after] = multiset.get(after, 0) + 1


def _add_multiset(group: _Lists, member: Member, multiset: dict[bytes, int]) -> None:
    for line, count in multiset.items():
        if count > 0:
            group.inserts.extend([line] * count)
            group.members.extend([member] * count)
        elif count < 0:
            group.removals[line] = group.removals.get(line, 0) - count
