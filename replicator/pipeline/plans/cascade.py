"""The effects of foreign keys with actions on rows of the targets: plain data for executors.

A parent's row event is also sent to the targets of its children. The event's plan for a child has a
graph of the tables that the change may affect in the shard: table 0 is the parent itself, and each
*edge* is a foreign key.
"""

from __future__ import annotations

from dataclasses import dataclass

from replicator.downstream.rows.target_columns import TargetColumn
from replicator.mysql.names import Member, TableName

CASCADE, SET_NULL = "CASCADE", "SET NULL"


@dataclass(frozen=True, slots=True)
class CascadeEdge:
    """A foreign key with an action.

    Attributes:
        child: index of the child among the tables.
        parent_columns: indexes of the referenced columns among `CascadeTable.referenced`.
        columns: the columns of the child's target, with the charset of the parent's values.
        on_delete: CASCADE, SET NULL, or empty.
        on_update: CASCADE, SET NULL, or empty.
    """

    child: int
    parent_columns: tuple[int, ...]
    columns: tuple[TargetColumn, ...]
    on_delete: str
    on_update: str


@dataclass(frozen=True, slots=True)
class CascadeTable:
    """A table that a change may affect.

    Attributes:
        member: the shard.
        target: the shard's target.
        referenced: the target's columns that keys with an action refer to; for table 0, the fields
            in the lines of its row events.
        edges: the keys that refer to the table.
        constants: extracted columns of the target with their fields; rows with other values belong
            to other shards.
        kept: columns that the target's server would set by itself in an UPDATE.
        key: the columns of the target's row key.
    """

    member: Member
    target: TableName
    referenced: tuple[TargetColumn, ...] = ()
    edges: tuple[CascadeEdge, ...] = ()
    constants: tuple[tuple[TargetColumn, bytes], ...] = ()
    kept: tuple[str, ...] = ()
    key: tuple[TargetColumn, ...] = ()


CascadeGraph = tuple[CascadeTable, ...]
