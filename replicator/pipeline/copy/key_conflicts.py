"""Finds the shards that already have the key of a target's row."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType

from pymysql.err import MySQLError

from replicator.downstream.rows.key_lookup import KeyFields
from replicator.downstream.rows.literals import NULL_FIELD, field_value, key_literal
from replicator.downstream.rows.target_columns import TargetColumn
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.names import TableName, folded, quote
from replicator.pipeline.copy.source_stream import SOURCE_SETTINGS, SourceStream
from replicator.pipeline.plans.planning import filled_column, target_column
from replicator.routing.columns.column_mapping import VALUE_LIMIT, MappedColumn
from replicator.routing.columns.member_columns import MemberColumns
from replicator.rows.values.fields import escape
from replicator.schema.structure.structure import Column, Table, UniqueKey

SHOWN = 5
"""Maximum number of shards that a message names."""

LOOK_UP_SECONDS = 10
"""Seconds after which no more shards are queried for a key. A running query ends then, too: a shard
need not have an index for each key of the target."""

_SETTINGS = (
    f"{SOURCE_SETTINGS} /*!50708 ,SESSION max_execution_time={LOOK_UP_SECONDS * 1000} */"
    f" /*M!100101 ,SESSION max_statement_time={LOOK_UP_SECONDS} */"
)


@dataclass(frozen=True, slots=True)
class KeyPart:
    """A column of the target's key, as one table has it.

    Attributes:
        column: the column, by its name in that table.
        mapped: the mapping of its values, if there is one.
        constant: the field that all rows of the table have, if the column is not read.
    """

    column: TargetColumn
    mapped: MappedColumn | None = None
    constant: bytes | None = None


def key_parts(
    columns: Sequence[Column],
    target: Table,
    rules: MemberColumns,
    fills: Mapping[str, bytes] = MappingProxyType({}),
) -> tuple[KeyPart, ...]:
    """Return the columns of a target's key in a shard with these rules. Raises PlanError.

    Args:
        fills: the fields of columns that the shard lacks, by folded name.
    """
    filled = (filled_column("", target, made) for made in rules.extracted)
    constants = {folded(column.name): escape(value) for column, value in filled} | {**fills}
    mapped = rules.mapped
    return tuple(
        KeyPart(
            target_column(column),
            mapped if mapped and folded(mapped.name) == folded(column.name) else None,
            constants.get(folded(column.name)),
        )
        for column in columns
    )


def own_key(parts: Sequence[KeyPart], line: bytes) -> KeyFields | None:
    """Return a table's columns and fields for the row with the key ``line`` of the target.

    Returns None if no row of the table can have this key.
    """
    found = []
    for part, field in zip(parts, line.split(b"\t"), strict=True):
        if part.constant is not None:
            if part.constant != field:
                return None
        elif part.mapped is not None and field != NULL_FIELD:
            value = part.mapped.original(int(field))
            if value is None:
                return None
            found.append((part.column, b"%d" % value))
        else:
            found.append((part.column, field))
    return found


@dataclass(frozen=True, slots=True)
class QueriedShard:
    """A shard that may have the key of a refused row."""

    source: str
    address: DatabaseAddress
    table: TableName
    rules: MemberColumns

    def __str__(self) -> str:
        return f"{self.source}: {self.table}"


@dataclass(frozen=True, slots=True)
class KeyHolders:
    """The other shards that have the key of a refused row.

    Attributes:
        key: the columns of the key; empty if the key is not known.
        shards: the shards that have the key.
        unread: shards that could not be queried.
    """

    key: tuple[str, ...] = ()
    shards: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    def shown(self, nowhere: str) -> str:
        """Return the result in words; ``nowhere``: the explanation if no shard has the key."""
        columns = f"the key ({', '.join(self.key)})" if self.key else "the key"
        if self.shards:
            return f"the row there, with the same value of {columns}, is that of " + ", ".join(
                self.shards
            )
        if not self.key or self.unread:
            which = f" in {_some(self.unread)}" if self.unread else " in the other shards"
            return f"the row there has the same value of {columns}, which can't be looked up{which}"
        return f"the row there has the same value of {columns}, and {nowhere}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def find_holders(
    columns: Sequence[TargetColumn],
    line: bytes,
    message: str,
    target: Table,
    others: Iterable[QueriedShard],
) -> KeyHolders:
    """Search other shards for the key of a refused row. Blocks.

    Args:
        columns: the columns of the row.
        line: the row.
        message: the server's error message, which names the key.
        target: the structure of the target.
        others: the shards to query.
    """
    key = _key(message, target)
    if key is None:
        return KeyHolders()
    names = [folded(column.name) for column in columns]
    fields = line.split(b"\t")
    written = dict(zip(names, zip(columns, fields, strict=True), strict=True))
    wanted = list(map(folded, key.columns))
    if not written.keys() >= set(wanted):
        return KeyHolders(key.columns)
    values = {name: written[name] for name in wanted}
    found, unread = [], []
    until = time.monotonic() + LOOK_UP_SECONDS
    for address, shards in groupby(others, lambda shard: shard.address):
        left = list(shards)
        try:
            with closing(SourceStream(address, settings=_SETTINGS)) as stream:
                while left:
                    conditions = key_conditions(values, left[0].rules)
                    if conditions is not None and time.monotonic() > until:
                        break
                    if conditions is not None and stream.rows(_one_row(left[0].table, conditions)):
                        found.append(str(left[0]))
                    left.pop(0)
        except (MySQLError, OSError):
            unread += [str(left.pop(0))]
        unread += map(str, left)
    return KeyHolders(key.columns, tuple(found), tuple(unread))


def _one_row(table: TableName, conditions: Sequence[bytes]) -> bytes:
    where = b" AND ".join(conditions) or b"TRUE"
    return b"SELECT 1 FROM %s WHERE %s LIMIT 1" % (table.quoted.encode(), where)


def key_conditions(
    values: Mapping[str, tuple[TargetColumn, bytes]],
    rules: MemberColumns,
    *,
    collated: bool = False,
) -> list[bytes] | None:
    """Return conditions for a shard's row with this key; None if the shard can't have such a row.

    ``collated``: whether texts are compared as the target compares them. If a shard's texts have
    another collation, the query then reads all rows of the shard.
    """
    made = {folded(column.name): column.value for column in rules.extracted}
    conditions = []
    for name, (column, field) in values.items():
        if name in made:
            if made[name].lower() != (field_value(field) or b"").decode(errors="replace").lower():
                return None
            continue
        if rules.mapped is not None and folded(rules.mapped.name) == name:
            value = int(field_value(field) or b"0")
            if value & ~(VALUE_LIMIT - 1) != rules.mapped.upper:
                return None
            field = b"%d" % (value & (VALUE_LIMIT - 1))
        condition = quote(column.name).encode() + b"=" + key_literal(column, field)
        if collated and column.collation and field_value(field) is not None:
            condition += b" COLLATE " + column.collation.encode()
        conditions.append(condition)
    return conditions


def _key(message: str, target: Table) -> UniqueKey | None:
    """Return the key in "Duplicate entry '5' for key 'PRIMARY'" (MySQL 8 adds the table name)."""
    match = re.search(r"for key '(?:[^']*\.)?([^'.]+)'\s*$", message)
    if match is None:
        return None
    return next((key for key in target.keys if folded(key.name) == folded(match[1])), None)
