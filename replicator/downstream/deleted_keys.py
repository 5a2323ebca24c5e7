"""Keys that were deleted while other shards may have had them, until it is known that none has.

They are noted by executors, in the transaction that deletes them, and looked up by the driver.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from replicator.downstream.columns import TargetColumn
from replicator.downstream.meta_table import MetaTable
from replicator.downstream.session import Session
from replicator.downstream.statements import packed
from replicator.mysql.names import TableName
from replicator.mysql.spellings import Fetching

DELETED_KEY_TABLE = MetaTable(
    "deleted_key",
    "target_schema VARCHAR(64) NOT NULL, target_table VARCHAR(64) NOT NULL,"
    " digest BINARY(32) NOT NULL, key_columns LONGTEXT NOT NULL, key_line LONGBLOB NOT NULL,"
    " PRIMARY KEY (target_schema, target_table, digest)",
)

KEYS_PER_STATEMENT = 500


@dataclass(frozen=True, slots=True)
class DeletedKeys:
    """Keys of a target as key lines, by the names that its key's columns had."""

    columns: tuple[str, ...]
    lines: tuple[bytes, ...]


def note_deleted(
    session: Session,
    table: str,
    target: TableName,
    columns: Sequence[TargetColumn],
    keys: Sequence[bytes],
) -> None:
    """Note keys in the transaction that deletes them; ``table`` is the quoted name.

    Raises the driver's error.
    """
    head = b"INSERT IGNORE INTO " + table.encode() + b" VALUES "
    names = json.dumps([column.name for column in columns]).encode()
    of = b",".join(map(_hex, (target.schema.encode(), target.table.encode())))
    values = (
        b"(%s,x'%s',%s,%s)" % (of, _digest(names, key), _hex(names), _hex(key)) for key in keys
    )
    for run in packed(values, KEYS_PER_STATEMENT, session.max_packet // 2):
        session.run(head + b",".join(run))


def noted_keys(session: Session, table: str, target: TableName, limit: int) -> list[DeletedKeys]:
    """At most so many of the keys that are noted of a target. Raises the driver's error."""
    rows = session.rows(
        b"SELECT key_columns,key_line FROM %s%s ORDER BY digest LIMIT %d"
        % (table.encode(), _where(target), limit)
    )
    found: dict[str, list[bytes]] = {}
    for names, line in rows:
        text = names.decode() if isinstance(names, bytes) else str(names)
        found.setdefault(text, []).append(bytes(line))
    return [DeletedKeys(tuple(json.loads(text)), tuple(lines)) for text, lines in found.items()]


def forget_keys(session: Session, table: str, target: TableName, keys: DeletedKeys) -> None:
    """Note no longer that these were deleted. Raises the driver's error."""
    names = json.dumps(list(keys.columns)).encode()
    digests = (b"x'%s'" % _digest(names, line) for line in keys.lines)
    for run in packed(digests, KEYS_PER_STATEMENT, session.max_packet // 2):
        session.run(
            b"DELETE FROM %s%s AND digest IN (%s)"
            % (table.encode(), _where(target), b",".join(run))
        )


async def noted_targets(connection: Fetching, table: str) -> list[TableName]:
    """The targets of which keys are noted. Raises DatabaseUnavailableError."""
    rows = await connection.fetch(f"SELECT DISTINCT target_schema, target_table FROM {table}")
    return [TableName(schema, table) for schema, table in rows]


def _where(target: TableName) -> bytes:
    return b" WHERE target_schema=%s AND target_table=%s" % (
        _hex(target.schema.encode()),
        _hex(target.table.encode()),
    )


def _digest(names: bytes, key: bytes) -> bytes:
    return hashlib.sha256(names + b"\0" + key).hexdigest().encode()


def _hex(value: bytes) -> bytes:
    return b"x'" + value.hex().encode() + b"'"
