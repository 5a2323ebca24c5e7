"""Keys that several shards may have, until it is known whether they do: deleted and shared keys.

The executor saves them in the transaction that deletes them, or that replaces a row which may be
another shard's. The driver searches the shards for them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from replicator.downstream.meta_table import MetaTable
from replicator.downstream.rows.statements import packed
from replicator.downstream.rows.target_columns import TargetColumn
from replicator.downstream.rows.write_session import Session
from replicator.mysql.names import TableName
from replicator.mysql.server.statement_aliases import Fetching

TRACKED_KEY_TABLE = MetaTable(
    "tracked_key",
    "target_schema VARCHAR(64) NOT NULL, target_table VARCHAR(64) NOT NULL,"
    " digest BINARY(32) NOT NULL, key_columns LONGTEXT NOT NULL, key_line LONGBLOB NOT NULL,"
    " times BIGINT NOT NULL, PRIMARY KEY (target_schema, target_table, digest)",
)

KEYS_PER_STATEMENT = 500

MANY_KEYS = 1_000_000
"""If more keys are tracked, the search is slow."""


@dataclass(frozen=True, slots=True)
class TrackedKey:
    """A key of a target.

    Attributes:
        columns: names of the key's columns when it was saved.
        line: the key line.
        times: how often the key was saved until now.
    """

    columns: tuple[str, ...]
    line: bytes
    digest: bytes
    times: int


def track_keys(
    session: Session,
    table: str,
    target: TableName,
    columns: Sequence[TargetColumn],
    keys: Iterable[bytes],
) -> None:
    """Save keys in the current transaction; ``table`` is the quoted name.

    Raises the driver's error.
    """
    head = b"INSERT INTO " + table.encode() + b" VALUES "
    names = json.dumps([column.name for column in columns]).encode()
    of = b",".join(map(_hex, (target.schema.encode(), target.table.encode())))
    # All transactions use the same order, so that no two of them wait for each other.
    digests = sorted((_digest(names, key), key) for key in keys)
    values = (
        b"(%s,x'%s',%s,%s,1)" % (of, digest, _hex(names), _hex(key)) for digest, key in digests
    )
    for run in packed(values, KEYS_PER_STATEMENT, session.max_packet // 2):
        session.run(head + b",".join(run) + b" ON DUPLICATE KEY UPDATE times=times+1")


KEYS_AT_ONCE = 20_000
"""The keys that one transaction of the target reads."""


def tracked_keys(session: Session, table: str, target: TableName, after: bytes) -> list[TrackedKey]:
    """Return at most `KEYS_AT_ONCE` saved keys of a target, ordered by their digests.

    ``after``: the digest after which they begin; empty for the first. Raises the driver's error.
    """
    rows = session.rows(
        b"SELECT key_columns,key_line,digest,times FROM %s%s AND digest>x'%s'"
        b" ORDER BY digest LIMIT %d"
        % (table.encode(), _where(target), after.hex().encode(), KEYS_AT_ONCE)
    )
    return [
        TrackedKey(tuple(json.loads(names)), bytes(line), bytes(digest), int(times))
        for names, line, digest, times in rows
    ]


def forget_keys(session: Session, table: str, target: TableName, keys: Iterable[TrackedKey]) -> int:
    """Remove keys unless they were saved again since they were read; return how many were removed.

    Raises the driver's error.
    """
    found = (
        b"(digest=x'%s' AND times=%d)" % (key.digest.hex().encode(), key.times) for key in keys
    )
    forgotten = 0
    for run in packed(found, KEYS_PER_STATEMENT, session.max_packet // 2):
        forgotten += session.run(
            b"DELETE FROM %s%s AND (%s)" % (table.encode(), _where(target), b" OR ".join(run))
        ).affected
    return forgotten


async def tracked_targets(connection: Fetching, table: str) -> dict[TableName, int]:
    """Return the number of saved keys by target. Raises DatabaseUnavailableError."""
    rows = await connection.fetch(
        f"SELECT target_schema, target_table, COUNT(*) FROM {table} GROUP BY 1, 2"
    )
    return {TableName(schema, name): int(keys) for schema, name, keys in rows}


def _where(target: TableName) -> bytes:
    return b" WHERE target_schema=%s AND target_table=%s" % (
        _hex(target.schema.encode()),
        _hex(target.table.encode()),
    )


def _digest(names: bytes, key: bytes) -> bytes:
    return hashlib.sha256(names + b"\0" + key).hexdigest().encode()


def _hex(value: bytes) -> bytes:
    return b"x'" + value.hex().encode() + b"'"
