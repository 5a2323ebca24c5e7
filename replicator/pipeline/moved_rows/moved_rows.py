"""Rows that a deletion took from the target though another shard has them: found, and put back.

In safe mode, and as long as two shards have the same key, the deletion of a key by one of them says
nothing about the other. So such keys are noted (`replicator.downstream.meta.tracked_keys`), and
those that the target lacks are looked up in all shards of their target here, while nothing is
applied. What is read is not older than what was applied; what is newer comes again by the binlogs,
in safe mode up to the places of the reading.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from replicator.downstream.fence import Fence
from replicator.downstream.meta.lease import lock_lease
from replicator.downstream.meta.tracked_keys import KEYS_AT_ONCE, TrackedKey, tracked_keys
from replicator.downstream.rows.key_lookup import keys_there
from replicator.downstream.rows.statements import StaleRows, confirm_plan, insert_rows
from replicator.downstream.rows.target_columns import TargetColumn
from replicator.downstream.rows.write_session import Session
from replicator.failpoints import Failpoint, reach
from replicator.mysql.names import folded
from replicator.pipeline.moved_rows.key_holders import KeyHolder, rows_held


class OtherKeyError(Exception):
    """Keys were noted by other columns than those of the target's key now."""


@dataclass(frozen=True, slots=True)
class Repair:
    """What became of some tracked keys: so many ``keys`` were looked up, so many ``rows`` put back.

    ``last``: the digest of the last one, None where there is none behind it. ``read_at``: by
    source, the places of the reading, where rows were put back.
    """

    last: bytes | None
    keys: int
    rows: int
    read_at: Mapping[str, int]


def repair(
    session: Session,
    table: str,
    fence: Fence,
    key_columns: Sequence[TargetColumn],
    holders: Sequence[KeyHolder],
    after: bytes,
) -> Repair:
    """Look keys up that a target lacks and put back what is missing, in a transaction that stays
    open.

    It is for the caller to note in it, before COMMIT, that the sources are in safe mode up to the
    places of the reading. ``table`` is the quoted name of the tracked keys; those behind the digest
    ``after`` are taken. They stay noted (`replicator.pipeline.moved_rows.shared_keys` forgets
    them): what one shard did before the place of its reading may take another's row away again.
    Raises OtherKeyError, TooOldError, FencedError, ShardChangedError,
    RowRefusedError, TargetChangedError or the driver's error.
    """
    target = holders[0].copy.target
    session.run(b"BEGIN")
    lock_lease(session, fence)
    noted = tracked_keys(session, table, target.name, after)
    refuse_other_columns(key_columns, noted)
    there = keys_there(session, target, key_columns, [key.line for key in noted])
    missing = [key.line for number, key in enumerate(noted) if number not in there]
    rows: dict[int, tuple[KeyHolder, bytes]] = {}
    places: dict[str, int] = {}
    for holder in holders if missing else ():
        held = rows_held(holder, missing)
        source = holder.copy.source
        places[source] = max(held.read_at, places.get(source, 0))
        for number, line in held.rows.items():
            rows.setdefault(number, (holder, line))
    if missing:
        reach(Failpoint.KEYS_LOOKED_UP)
    removed: list[bytes] = []
    for holder, line in rows.values():
        keys = holder.copy.target.held
        stale = StaleRows(key_columns, keys, removed.extend) if keys else None
        insert_rows(session, target, holder.copy.columns, [line], exact=True, stale=stale)
    if removed:
        _put_back_removed(session, key_columns, holders, removed, places)
    if rows:
        confirm_plan(session, target)
    last = noted[-1].digest if len(noted) == KEYS_AT_ONCE else None
    return Repair(last, len(missing), len(rows), places if rows else {})


def _put_back_removed(
    session: Session,
    key_columns: Sequence[TargetColumn],
    holders: Sequence[KeyHolder],
    removed: Sequence[bytes],
    places: dict[str, int],
) -> None:
    """Put rows that were in the way of others back as their shards have them now.

    Raises RowRefusedError if they are still in the way: two shards have the same unique values.
    """
    target = holders[0].copy.target
    there = keys_there(session, target, key_columns, removed)
    gone = list(dict.fromkeys(key for number, key in enumerate(removed) if number not in there))
    back: dict[int, tuple[KeyHolder, bytes]] = {}
    for holder in holders if gone else ():
        held = rows_held(holder, gone)
        source = holder.copy.source
        places[source] = max(held.read_at, places.get(source, 0))
        for number, line in held.rows.items():
            back.setdefault(number, (holder, line))
    for holder, line in back.values():
        insert_rows(session, target, holder.copy.columns, [line], exact=True)


def refuse_other_columns(key_columns: Sequence[TargetColumn], noted: Sequence[TrackedKey]) -> None:
    """Raise OtherKeyError for keys that were noted by other columns than these."""
    names = [folded(column.name) for column in key_columns]
    for columns in {key.columns for key in noted}:
        if [folded(name) for name in columns] != names:
            raise OtherKeyError(f"by {', '.join(columns)}")
