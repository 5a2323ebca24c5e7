"""Effects of foreign keys on a child's rows that are not applied together with its parent's rows.

A row changed by foreign keys may have children whose rows are held, or were applied while the
parent's rows were held. The executor saves the effects in the transaction that changes the parent;
they are applied when the child's rows reach this event. Uncertain effects are left to a
reconciliation of the child's target.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from replicator.downstream.meta_table import MetaTable
from replicator.downstream.rows.write_session import Session
from replicator.mysql.names import Member, TableName
from replicator.watermark import Place

LATE_CASCADE_TABLE = MetaTable(
    "late_cascade",
    "source VARCHAR(255) NOT NULL, member_schema VARCHAR(64) NOT NULL,"
    " member_table VARCHAR(64) NOT NULL, transaction_key BIGINT NOT NULL, ordinal BIGINT NOT NULL,"
    " parent_schema VARCHAR(64) NOT NULL, parent_table VARCHAR(64) NOT NULL,"
    " number INT NOT NULL, columns LONGTEXT NOT NULL, changes LONGTEXT NOT NULL,"
    " PRIMARY KEY (source, member_schema, member_table, transaction_key, ordinal, parent_schema,"
    " parent_table, number)",
)

Change = tuple[tuple[bytes, ...], tuple[bytes, ...] | None]
"""The referenced values of a row before and after; None after a deletion."""


@dataclass(frozen=True, slots=True)
class LateCascade:
    """Changes of a parent's rows whose effects on one child are yet to be applied.

    Attributes:
        child: the shard whose rows are yet to be changed.
        parent: the shard whose rows have changed.
        columns: the referenced columns, by their names in the parent's target.
    """

    child: Member
    parent: TableName
    columns: tuple[str, ...]
    changes: tuple[Change, ...]


def note_late(session: Session, table: str, at: Place, late: Sequence[LateCascade]) -> None:
    """Save changes at the position of a row event. Raises the driver's error."""
    for number, one in enumerate(late):
        values = (
            *map(_text, (one.child.source, *one.child.name)),
            b"%d,%d" % (at.transaction, at.ordinal),
            *map(_text, one.parent),
            b"%d" % number,
            _text(json.dumps(one.columns)),
            _text(json.dumps([[_hex(before), _hex(after)] for before, after in one.changes])),
        )
        session.run(b"REPLACE INTO %s VALUES (%s)" % (table.encode(), b",".join(values)))


def take_late(session: Session, table: str, at: Place, child: Member) -> list[LateCascade]:
    """Remove and return the saved changes of a child at a position. Raises the driver's error."""
    where = b" WHERE source=%s AND member_schema=%s AND member_table=%s" % (
        *map(_text, (child.source, *child.name)),
    )
    where += b" AND transaction_key=%d AND ordinal=%d" % (at.transaction, at.ordinal)
    rows = session.rows(
        b"SELECT parent_schema,parent_table,columns,changes FROM %s%s ORDER BY number"
        % (table.encode(), where)
    )
    if rows:
        session.run(b"DELETE FROM %s%s" % (table.encode(), where))
    return [
        LateCascade(
            child,
            TableName(_string(schema), _string(name)),
            tuple(json.loads(columns)),
            tuple((_bytes(before) or (), _bytes(after)) for before, after in json.loads(changes)),
        )
        for schema, name, columns, changes in rows
    ]


def forget_late_sql(table: str) -> str:
    """Return the statement that removes a source's (%s) changes before a position's key (%s)."""
    return f"DELETE FROM {table} WHERE source = %s AND transaction_key < %s"


def queue_children(session: Session, table: str, target: TableName, source: str) -> None:
    """Request the reconciliation of a target of children in the current transaction.

    This does the same as `replicator.downstream.meta.reconciliations.queue_reconciliation`, whose
    module executors can't import. ``source`` must be in safe mode until the reconciliation is done.
    Raises the driver's error.
    """
    every_row = hashlib.sha256(b"").hexdigest().encode()
    line, safe = _text(f"{json.dumps([])}\n"), _text(f"{source}\n")
    values = *map(_text, target), line, b"%d" % time.time(), safe
    session.run(
        b"INSERT INTO %s (target_schema,target_table,column_names,queued_at,safe_sources,"
        b"condition_digest,row_condition,asked,begun,corrected,progress)"
        b" VALUES (%s,'%s','',1,0,0,'') ON DUPLICATE KEY UPDATE asked=asked+1,%s,%s"
        % (
            *(table.encode(), b",".join(values), every_row),
            *(_with_line(b"column_names", line), _with_line(b"safe_sources", safe)),
        )
    )


def _with_line(column: bytes, line: bytes) -> bytes:
    """Return the assignment that adds a line to a column, unless the column has it already."""
    here = b"LOCATE(CONCAT(x'0a',%s),CONCAT(x'0a',%s))" % (line, column)
    return b"%s=IF(%s,%s,CONCAT(%s,%s))" % (column, here, column, column, line)


def _text(value: str) -> bytes:
    return b"x'" + value.encode().hex().encode() + b"'"


def _string(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _hex(fields: Iterable[bytes] | None) -> list[str] | None:
    return None if fields is None else [field.hex() for field in fields]


def _bytes(fields: list[str] | None) -> tuple[bytes, ...] | None:
    return None if fields is None else tuple(map(bytes.fromhex, fields))
