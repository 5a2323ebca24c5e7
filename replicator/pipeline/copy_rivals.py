"""Which other shard has the key of a row that the target refused as a duplicate."""

from __future__ import annotations

import re
from collections.abc import Iterable

from replicator.downstream.literals import key_predicate
from replicator.mysql.address import DatabaseAddress
from replicator.mysql.names import TableName, folded, quote
from replicator.pipeline.copy_plan import TableCopy
from replicator.pipeline.source_stream import SourceStream
from replicator.schema.structure import Table, UniqueKey


def find_holders(
    copy: TableCopy,
    line: bytes,
    message: str,
    target: Table,
    others: Iterable[tuple[str, DatabaseAddress, TableName]],
) -> list[str]:
    """The shards among ``others`` (source, its address, table) that hold the key of a row.

    ``line`` is the row, ``message`` the server's words, which name the key. Empty where the key
    can't be told. Blocks. Raises the driver's error.
    """
    key = _key(message, target)
    if key is None:
        return []
    names = [folded(column.name) for column in copy.columns]
    fields = line.split(b"\t")
    conditions = []
    for name in key.columns:
        if folded(name) not in names:
            return []
        place = names.index(folded(name))
        column = copy.columns[place]
        conditions.append(quote(name).encode() + b"=" + key_predicate(column, fields[place]))
    found = []
    for source, address, table in others:
        stream = SourceStream(address)
        try:
            qualified = table.quoted.encode()
            where = b" AND ".join(conditions)
            if stream.rows(b"SELECT 1 FROM %s WHERE %s LIMIT 1" % (qualified, where)):
                found.append(f"{source}: {table}")
        finally:
            stream.close()
    return found


def _key(message: str, target: Table) -> UniqueKey | None:
    """The key in "Duplicate entry '5' for key 'PRIMARY'" (MySQL 8 puts the table in front)."""
    match = re.search(r"for key '(?:[^']*\.)?([^'.]+)'\s*$", message)
    if match is None:
        return None
    return next((key for key in target.keys if folded(key.name) == folded(match[1])), None)
