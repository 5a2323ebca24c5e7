"""Whether other rows of a table can stand in the way of a row whose key is free.

Then old rows have to go before new ones come, and all changes of the table are applied in order.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from replicator.mysql.names import folded
from replicator.schema.structure.structure import Table, UniqueKey

_WITHOUT_OVERLAPS = re.compile(
    r"^\s*(?:(PRIMARY) KEY|UNIQUE KEY `((?:[^`]|``)*)`) \(.* WITHOUT OVERLAPS\)", re.MULTILINE
)
"""A key as MariaDB's SHOW CREATE TABLE writes it ("Application-Time Periods" of its manual)."""


def only_row_key_collides(target: Table, written: Collection[str]) -> bool:
    """Whether no row is refused whose row key is free.

    ``written``: the names of the columns that get values from shards. A key of numbers that the
    target gives itself refuses no row. One ``WITHOUT OVERLAPS`` also refuses rows whose period
    meets another row's.
    """
    row_key = target.row_key
    names = set(map(folded, written))
    return (
        row_key is not None
        and names.issuperset(map(folded, row_key.columns))
        and row_key.name not in keys_without_overlaps(target)
        and all(key is row_key or _own_numbers(target, key, names) for key in target.keys)
    )


def _own_numbers(target: Table, key: UniqueKey, written: Collection[str]) -> bool:
    columns = [target.column(name) for name in key.columns]
    return all(
        column is not None and column.auto_increment and folded(column.name) not in written
        for column in columns
    )


def keys_without_overlaps(table: Table) -> frozenset[str]:
    """The names of the keys that compare a period besides columns."""
    found = _WITHOUT_OVERLAPS.findall(table.create_sql)
    return frozenset(primary or name.replace("``", "`") for primary, name in found)
