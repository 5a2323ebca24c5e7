"""Decides about the rows of a segment by the version rule, and keeps held rows. Vectorised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from actors.saved.lock_state import ShardStatement
from actors.sharding.pessimistic.rows_in_memory import RowsInMemory
from replicator.binlog.segments.row_events import RowEvents
from replicator.kernels.compiled import Truths
from replicator.mysql.names import TableName
from replicator.sharding.items import RowDecision
from replicator.sharding.pessimistic.group import Group


def decide_rows(
    group: Group[TableName, ShardStatement],
    numbers: Mapping[TableName, int],
    tables: Sequence[RowEvents | None],
    held_rows: RowsInMemory,
) -> list[RowEvents | None]:
    """Return the rows to apply, for each table of row events; keep held rows in ``held_rows``."""
    names = {number: name for name, number in numbers.items()}
    found: list[RowEvents | None] = [None] * len(tables)
    left = [(at, rows, np.zeros(len(rows), np.bool_), 0) for at, rows in enumerate(tables) if rows]
    while left:
        cutover = group.next_cutover
        # The version changes between rows. Rows up to a cutover are decided together; the first row
        # after it, which passes the cutover, is decided alone.
        ends = [len(rows) if cutover is None else rows.up_to(cutover) for _, rows, _, _ in left]
        if all(end <= begin for end, (*_, begin) in zip(ends, left, strict=True)):
            firsts = [rows.between(begin, begin + 1).first for _, rows, _, begin in left]
            first = firsts.index(min(firsts))
            ends[first] = left[first][3] + 1
        runs = [
            (rows.between(begin, end), chosen[begin:end])
            for end, (_, rows, chosen, begin) in zip(ends, left, strict=True)
            if end > begin
        ]
        _decide_run(group, names, runs, held_rows)
        going = []
        for end, (at, rows, chosen, begin) in zip(ends, left, strict=True):
            if max(begin, end) < len(rows):
                going.append((at, rows, chosen, max(begin, end)))
            else:
                found[at] = rows.where(chosen)
        left = going
    return found


def _decide_run(
    group: Group[TableName, ShardStatement],
    names: Mapping[int, TableName],
    runs: Sequence[tuple[RowEvents, Truths]],
    held_rows: RowsInMemory,
) -> None:
    """Choose the rows to apply; no cutover is before the last of these rows."""
    counts = {member: count for rows, _ in runs for member, count in rows.members.items()}
    first = min(rows.first for rows, _ in runs)
    end, _ = max(runs, key=lambda run: run[0].last)
    last = end.kinds[int(end.kind[-1])].member
    decisions = {
        member: group.row(names[member], first, count)
        for member, count in counts.items()
        if member != last
    }
    # All other rows are before the last one. So it is decided last, and passes a cutover at its
    # position.
    decisions[last] = group.row(names[last], end.last, counts[last])
    for rows, chosen in runs:
        applied = [decisions.get(kind.member) is RowDecision.APPLY for kind in rows.kinds]
        chosen[:] = np.array(applied, np.bool_)[rows.kind]
    held = [member for member, found in decisions.items() if found is RowDecision.HOLD]
    versions = {member: group.members[names[member]].version for member in held}
    for version in sorted(set(versions.values())):
        for rows, _ in runs:
            of_version = [versions.get(kind.member) == version for kind in rows.kinds]
            kept = rows.where(np.array(of_version, np.bool_)[rows.kind])
            if kept is not None:
                held_rows.keep(version, kept)
