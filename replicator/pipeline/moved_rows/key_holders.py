"""Which rows with given keys of a target a shard has, at a known place of its binlog."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from replicator.downstream.rows.key_lookup import KeyQuery, key_queries
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.server.identity import ServerIdentity
from replicator.pipeline.copy.copy_chunk import check_structure, source_snapshot
from replicator.pipeline.copy.copy_plan import TableCopy
from replicator.pipeline.copy.copy_reading import converted
from replicator.pipeline.copy.key_conflicts import KeyPart, own_key

LOOKS, LOOK_PAUSE = 100, 0.1
"""How often a snapshot is taken until it shows what was applied, and the seconds in between: a
server may send a transaction before others see it."""


class TooOldError(Exception):
    """A source shows no state that is as new as what was applied."""


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """A shard to look in: how it is read, and the place (key) of its binlog that was applied.

    ``server``: the one that wrote that binlog. ``key``: the target's key here, in its order.
    """

    copy: TableCopy
    address: DatabaseAddress
    server: ServerIdentity
    applied: int
    key: tuple[KeyPart, ...]


@dataclass(frozen=True, slots=True)
class HeldRows:
    """The row lines of a shard, by the numbers of their keys, at the place ``read_at``."""

    rows: Mapping[int, bytes]
    read_at: int


@dataclass(frozen=True, slots=True)
class HeldKeys:
    """The numbers of the keys that a shard has rows of, at the place ``read_at``."""

    keys: frozenset[int]
    read_at: int


def rows_held(holder: KeyHolder, lines: Sequence[bytes]) -> HeldRows:
    """The rows of a shard with these keys (key lines of the target), which are numbered from 0.

    Raises ShardChangedError, TooOldError, OtherServerError or the driver's error.
    """
    copy, queries = holder.copy, _queries(holder, lines)
    for _ in range(LOOKS):
        with source_snapshot(holder.address, copy, True, holder.server) as (stream, read_at):
            if read_at >= holder.applied:
                found: dict[int, bytes] = {}
                for query in queries:
                    sql = _select(copy, b",".join(copy.selected) + b"," + query.number, query)
                    for block, _ in converted(copy, stream.blocks(sql)):
                        for line in bytes(block).split(b"\n")[:-1]:
                            row, _, number = line.rpartition(b"\t")
                            found[int(number)] = row
                check_structure(stream, copy)
                return HeldRows(found, read_at)
        time.sleep(LOOK_PAUSE)
    raise TooOldError(str(copy))


def keys_held(holder: KeyHolder, lines: Sequence[bytes]) -> HeldKeys:
    """Which of these keys a shard has rows of: as `rows_held`, without the rows.

    The shard need not have the structure that was planned for, as long as it has the key's columns.
    """
    copy, queries = holder.copy, _queries(holder, lines)
    for _ in range(LOOKS):
        with source_snapshot(holder.address, copy, True, holder.server) as (stream, read_at):
            if read_at >= holder.applied:
                found: set[int] = set()
                for query in queries:
                    rows = stream.rows(_select(copy, query.number, query))
                    found.update(int(number) for (number,) in rows)
                return HeldKeys(frozenset(found), read_at)
        time.sleep(LOOK_PAUSE)
    raise TooOldError(str(copy))


def _queries(holder: KeyHolder, lines: Sequence[bytes]) -> list[KeyQuery]:
    keys = ((number, own_key(holder.key, line)) for number, line in enumerate(lines))
    return list(key_queries((number, key) for number, key in keys if key is not None))


def _select(copy: TableCopy, selected: bytes, query: KeyQuery) -> bytes:
    conditions = (query.condition, *copy.conditions)
    return b"SELECT %s FROM %s WHERE %s" % (selected, copy.name, b" AND ".join(conditions))
