"""The proof: a target table holds exactly the rows of its shards, each as often as they do.

Every row is reduced to a digest of all its values, by the servers; the digests of all shards,
sorted and merged, must be those of the target. NULL, the empty string and every byte count.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice

from pymysql.connections import Connection
from pymysql.cursors import Cursor, SSCursor

from replicator.demo.estate import Estate
from replicator.demo.tables import SCHEMAS, Entity, sql
from replicator.mysql.names import quote
from replicator.sandbox.server import DatabaseServer

SHOWN = 10
"""Differences listed for an entity."""
FETCH = 2000

Home = tuple[DatabaseServer, str]
"""A table on a server."""


@dataclass(frozen=True)
class MergeProof:
    """What came out for one entity; the fingerprints are SHA-256 over all sorted row digests."""

    entity: Entity
    shards: int
    shard_rows: int
    target_rows: int
    shard_fingerprint: str
    target_fingerprint: str
    differences: tuple[str, ...]

    @property
    def equal(self) -> bool:
        """Whether the target is the union of its shards, row for row."""
        return (
            self.shard_rows == self.target_rows
            and self.shard_fingerprint == self.target_fingerprint
            and not self.differences
        )


class _Digests:
    """A stream of sorted digests that counts and fingerprints what passes."""

    def __init__(self, digests: Iterator[bytes]) -> None:
        self._digests = digests
        self._hash = hashlib.sha256()
        self.count = 0

    def __iter__(self) -> Iterator[bytes]:
        for digest in self._digests:
            self._hash.update(digest)
            self.count += 1
            yield digest

    @property
    def fingerprint(self) -> str:
        return self._hash.hexdigest()


def prove(estate: Estate, entity: Entity) -> MergeProof:
    """Compare all shards of an entity with its target. Nothing may be written meanwhile."""
    shards: list[Home] = [
        (server, table)
        for server in estate.sources.values()
        for schema in SCHEMAS
        for table in entity.shard_tables(schema)
    ]
    columns = _columns(estate.target, entity)
    with ExitStack() as stack:
        streams = [_digests(stack, server, table, columns) for server, table in shards]
        in_shards = _Digests(heapq.merge(*streams))
        in_target = _Digests(_digests(stack, estate.target, entity.target_table, columns))
        only = list(islice(unmatched(iter(in_shards), iter(in_target)), SHOWN))
        for _ in in_shards:
            pass
        for _ in in_target:
            pass
    places: dict[str, list[Home]] = {
        "shards": shards,
        "target": [(estate.target, entity.target_table)],
    }
    return MergeProof(
        entity,
        len(shards),
        in_shards.count,
        in_target.count,
        in_shards.fingerprint,
        in_target.fingerprint,
        tuple(
            f"only in the {side}: {_row(places[side], digest, columns)}" for side, digest in only
        ),
    )


def unmatched(left: Iterator[bytes], right: Iterator[bytes]) -> Iterator[tuple[str, bytes]]:
    """What two sorted streams do not have in common, with the side that has it more often."""
    one, other = next(left, None), next(right, None)
    while one is not None or other is not None:
        if one == other:
            one, other = next(left, None), next(right, None)
        elif other is None or (one is not None and one < other):
            assert one is not None
            yield "shards", one
            one = next(left, None)
        else:
            yield "target", other
            other = next(right, None)


def _columns(server: DatabaseServer, entity: Entity) -> list[str]:
    """All columns of the target, in its order; the shards were made by the same statement."""
    shown = server.execute(sql("SHOW COLUMNS FROM", entity.target_table))
    return [str(row[0]) for row in shown]


def _digest_of(columns: list[str]) -> str:
    values = ", ".join(f"IFNULL(HEX(CAST({quote(column)} AS BINARY)), '-')" for column in columns)
    return f"MD5(CONCAT_WS(',', {values}))"


def _digests(
    stack: ExitStack, server: DatabaseServer, table: str, columns: list[str]
) -> Iterator[bytes]:
    connection = _connection(stack, server)
    cursor = stack.enter_context(connection.cursor(SSCursor))
    cursor.execute(sql("SELECT", _digest_of(columns), "AS digest FROM", table, "ORDER BY digest"))
    return _read(cursor)


def _read(cursor: SSCursor) -> Iterator[bytes]:
    while rows := cursor.fetchmany(FETCH):
        for (digest,) in rows:
            yield bytes.fromhex(digest)


def _row(homes: list[Home], digest: bytes, columns: list[str]) -> str:
    for server, table in homes:
        with ExitStack() as stack, _connection(stack, server).cursor() as cursor:
            statement = sql("SELECT * FROM", table, "WHERE", _digest_of(columns), "= %s LIMIT 1")
            cursor.execute(statement, (digest.hex(),))
            for row in cursor.fetchall():
                values = zip(columns, row, strict=True)
                pairs = ", ".join(f"{column}={value!r}" for column, value in values)
                return f"{table} port {server.port}: {pairs}"
    return f"a row that has gone since (digest {digest.hex()})"


def _connection(stack: ExitStack, server: DatabaseServer) -> Connection[Cursor]:
    # TIMESTAMP is compared as text, so all servers must tell the same zone.
    return stack.enter_context(server.connect(init_command="SET time_zone = '+00:00'"))
