"""Rows that a deletion took from the target though another shard has them: found, and put back.

In safe mode, and as long as a shard may still have a row that was copied from another one, the
deletion of a key by one shard says nothing about the others. So such keys are noted
(`replicator.downstream.deleted_keys`), and looked up in all shards of their target here, while
nothing is applied. What is read is not older than what was applied; what is newer comes again by
the binlogs, in safe mode up to the places of the reading.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from replicator.downstream.columns import TargetColumn
from replicator.downstream.deleted_keys import DeletedKeys, forget_keys, noted_keys
from replicator.downstream.fence import Fence, Mismatch, OutOfStepError
from replicator.downstream.literals import identifier, key_predicate
from replicator.downstream.session import Session
from replicator.downstream.statements import insert_rows
from replicator.mysql.address import DatabaseAddress
from replicator.mysql.names import folded
from replicator.pipeline.copy_chunk import check_structure, converted, source_snapshot
from replicator.pipeline.copy_plan import TableCopy

KEYS_AT_ONCE = 100_000
"""Keys that are looked up by one transaction of the target; ``KEYS_PER_QUERY`` by one statement."""

KEYS_PER_QUERY = 500

LOOKS, LOOK_PAUSE = 100, 0.1
"""How often a snapshot is taken until it shows what was applied, and the seconds in between: a
server may send a transaction before others see it."""


class OtherKeyError(Exception):
    """Keys were noted by other columns than those of the target's key now."""


class TooOldError(Exception):
    """A source shows no state that is as new as what was applied."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A shard to look in: how it is read, and the place (key) of its binlog that was applied.

    ``extracted``: by their folded names, the fields that its rows have in columns of the target
    which the shard does not have.
    """

    copy: TableCopy
    address: DatabaseAddress
    applied: int
    extracted: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class LookedUp:
    """What a look-up found: ``keys`` noted, ``rows`` put back, ``shared`` keys that several shards
    have. ``read_at``: by source, the places of the reading, where rows of it were put back."""

    keys: int
    rows: int
    shared: int
    read_at: Mapping[str, int]


def put_back(
    session: Session,
    table: str,
    fence: Fence,
    key_columns: Sequence[TargetColumn],
    holders: Sequence[Holder],
) -> LookedUp:
    """Look keys of a target up and put back what is missing, in a transaction that stays open.

    It is for the caller to note in it, before COMMIT, that the sources are in safe mode up to the
    places of the reading. ``table`` is the quoted name of the noted keys. Raises OtherKeyError,
    TooOldError, OutOfStepError, ShardChangedError, RowRefusedError or the driver's error.
    """
    target = holders[0].copy.target
    session.run(b"BEGIN")
    _lock_lease(session, fence)
    noted = noted_keys(session, table, target.name, KEYS_AT_ONCE)
    names = [folded(column.name) for column in key_columns]
    rows: dict[bytes, tuple[Holder, bytes]] = {}
    shared: set[bytes] = set()
    places: dict[str, int] = {}
    for keys in noted:
        if [folded(name) for name in keys.columns] != names:
            raise OtherKeyError(f"by {', '.join(keys.columns)}")
        for holder in holders:
            place, lines = _held(holder, key_columns, keys)
            source = holder.copy.source
            places[source] = max(place, places.get(source, 0))
            for line in lines:
                key = _key_of(holder.copy, key_columns, line)
                if rows.setdefault(key, (holder, line))[0] is not holder:
                    shared.add(key)
    read_at: dict[str, int] = {}
    written = 0
    for key, (holder, line) in rows.items():
        if not session.rows(
            b"SELECT 1 FROM %s WHERE %s LIMIT 1"
            % (
                target.quoted.encode(),
                _is_one_of([list(zip(key_columns, key.split(b"\t"), strict=True))]),
            )
        ):
            insert_rows(session, target, holder.copy.columns, [line], verb=b"REPLACE")
            read_at[holder.copy.source] = places[holder.copy.source]
            written += 1
    for keys in noted:
        done = tuple(line for line in keys.lines if line not in shared)
        forget_keys(session, table, target.name, DeletedKeys(keys.columns, done))
    return LookedUp(sum(len(keys.lines) for keys in noted), written, len(shared), read_at)


def _lock_lease(session: Session, fence: Fence) -> None:
    rows = session.rows(b"SELECT token FROM %s FOR UPDATE" % fence.lease_table.encode())
    if not rows or int(rows[0][0]) != fence.token:
        found = str(rows[0][0]) if rows else "nothing"
        raise OutOfStepError(Mismatch("the lease's token", str(fence.token), found))


def _held(
    holder: Holder, key_columns: Sequence[TargetColumn], keys: DeletedKeys
) -> tuple[int, list[bytes]]:
    """The rows with these keys that a shard has, and the place at which it has them."""
    for look in range(LOOKS):
        if look:
            time.sleep(LOOK_PAUSE)
        with source_snapshot(holder.address, holder.copy, True) as (stream, read_at):
            if read_at < holder.applied:
                continue
            found: list[bytes] = []
            own = (own_key(holder, key_columns, line) for line in keys.lines)
            for page in _pages([key for key in own if key is not None]):
                conditions = (b"(%s)" % _is_one_of(page), *holder.copy.conditions)
                query = b"SELECT %s FROM %s WHERE %s" % (
                    holder.copy.selected,
                    holder.copy.name,
                    b" AND ".join(conditions),
                )
                for block, _ in converted(holder.copy, stream.blocks(query)):
                    found += bytes(block).split(b"\n")[:-1]
            check_structure(stream, holder.copy)
            return read_at, found
    raise TooOldError(f"{holder.copy}")


def own_key(
    holder: Holder, key_columns: Sequence[TargetColumn], line: bytes
) -> list[tuple[TargetColumn, bytes]] | None:
    """What the columns of a shard are in the row that has a key of the target.

    None where, by what is made of its columns, no row of the shard can have this key.
    """
    extracted, mapped = dict(holder.extracted), holder.copy.mapped
    found: list[tuple[TargetColumn, bytes]] = []
    for column, field in zip(key_columns, line.split(b"\t"), strict=True):
        name = folded(column.name)
        if name in extracted:
            if extracted[name] != field:
                return None
        elif mapped is not None and name == folded(mapped.name):
            value = mapped.original(int(field))
            if value is None:
                return None
            found.append((column, b"%d" % value))
        else:
            found.append((column, field))
    return found


def _pages(
    keys: Sequence[list[tuple[TargetColumn, bytes]]],
) -> Iterator[Sequence[list[tuple[TargetColumn, bytes]]]]:
    for first in range(0, len(keys), KEYS_PER_QUERY):
        yield keys[first : first + KEYS_PER_QUERY]


def _is_one_of(keys: Sequence[Sequence[tuple[TargetColumn, bytes]]]) -> bytes:
    parts = (
        b" AND ".join(
            identifier(column.name) + b"=" + key_predicate(column, field) for column, field in key
        )
        or b"TRUE"
        for key in keys
    )
    return b"(" + b") OR (".join(parts) + b")"


def _key_of(copy: TableCopy, key_columns: Sequence[TargetColumn], line: bytes) -> bytes:
    names = [folded(column.name) for column in copy.columns]
    fields = line.split(b"\t")
    return b"\t".join(fields[names.index(folded(column.name))] for column in key_columns)
