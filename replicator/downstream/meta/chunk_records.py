"""One record per chunk of a shard, written in the transaction that writes the chunk's rows.

After a crash, the records show which chunks are on the target. The driver plans a chunk
(`replicator.downstream.meta.chunks`); the executor that copies it locks and completes the record.
"""

from __future__ import annotations

from dataclasses import dataclass

from replicator.downstream.fence import Fence, FencedError, Mismatch
from replicator.downstream.meta_table import MetaTable
from replicator.downstream.rows.write_session import Session
from replicator.mysql.names import Member, TableName

CHUNK_TABLE = MetaTable(
    "chunk",
    "source VARCHAR(64) NOT NULL, schema_name VARCHAR(64) NOT NULL,"
    " table_name VARCHAR(64) NOT NULL, number INT NOT NULL,"
    " lower_key LONGTEXT, upper_key LONGTEXT, state TINYINT NOT NULL,"
    " row_count BIGINT NOT NULL, byte_count BIGINT NOT NULL, read_at BIGINT NOT NULL,"
    " known_to BIGINT NOT NULL DEFAULT 0, read_by BIGINT NOT NULL DEFAULT 0,"
    " added_rows BIGINT NOT NULL DEFAULT 0,"
    " token BIGINT NOT NULL,"
    " PRIMARY KEY (source, schema_name, table_name, number)",
)

PLANNED, DONE = 0, 1
"""The states of a chunk."""


@dataclass(frozen=True, slots=True)
class ReadChunk:
    """The result of reading a chunk of a shard. Positions are keys, 0 if there is none.

    Attributes:
        rows: number of rows read.
        size: bytes of the row lines.
        read_at: binlog position to which the rows belong, if the copy needed it.
        known_to: position up to which the shard's statements were known.
        read_by: position before which the chunk was read.
        added: number of rows by which the target has grown.
    """

    rows: int
    size: int
    read_at: int
    known_to: int
    read_by: int
    added: int


def lost_chunk(source: str, member: TableName, number: int, expected: str) -> Mismatch:
    """Return the mismatch of a chunk whose record is missing or not the ``expected`` one."""
    return Mismatch(
        f"chunk {number} of {Member(source, member)}", expected, "no such record of this run"
    )


def lock_chunk(
    session: Session, table: str, fence: Fence, source: str, member: TableName, number: int
) -> bool:
    """Lock a planned chunk until the transaction ends; return whether its rows are on the target.

    The lock excludes another copy of the same chunk that is still running. Raises the server's
    error, and FencedError if the target has no record of this run's plan of the chunk.
    """
    where = _where(source, member, number)
    rows = session.rows(b"SELECT state,token FROM %s%s FOR UPDATE" % (table.encode(), where))
    if rows and int(rows[0][0]) == DONE:
        return True
    if not rows or int(rows[0][1]) != fence.token:
        raise FencedError(lost_chunk(source, member, number, "planned"))
    return False


def record_chunk(
    session: Session, table: str, source: str, member: TableName, number: int, read: ReadChunk
) -> None:
    """Save that a chunk's rows are on the target, in the transaction that wrote them."""
    session.run(
        b"UPDATE %s SET state=%d,row_count=%d,byte_count=%d,read_at=%d,known_to=%d,read_by=%d,"
        b"added_rows=%d%s"
        % (
            table.encode(),
            DONE,
            read.rows,
            read.size,
            read.read_at,
            read.known_to,
            read.read_by,
            read.added,
            _where(source, member, number),
        )
    )


def _where(source: str, member: TableName, number: int) -> bytes:
    return b" WHERE source=%s AND schema_name=%s AND table_name=%s AND number=%d" % (
        _text(source),
        _text(member.schema),
        _text(member.table),
        number,
    )


def _text(value: str) -> bytes:
    return b"_utf8mb4 x'" + value.encode().hex().encode() + b"'"
